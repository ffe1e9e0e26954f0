import { useState } from "preact/hooks";
import type { VerbAnswer, VerbInput } from "../../../client/verbs.ts";
import { Button } from "../../parts/button.tsx";
import { CopyButton } from "../../parts/copy.tsx";
import { Confirm, Dialog } from "../../parts/dialog.tsx";
import { Failure, Panel } from "../../parts/page.tsx";
import { Status } from "../../parts/status.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { ask, caller, tenant, whyNot } from "../../state/book.ts";
import { serverNow } from "../../state/clock.ts";
import { useList } from "../../state/use-list.ts";

type Token = VerbAnswer<"tokens.list">["items"][number];

const roles = ["read", "operate", "admin", "worker"] as const;

const may = {
  read: "sees everything but secrets, and changes nothing",
  operate: "also enqueues, retries, publishes, writes records and steers",
  admin: "also makes tokens, reveals what is sealed and removes for good",
  worker: "takes jobs and settles them, and nothing else",
} as const;

/** "mail, video" as a list; nothing is every one. */
function listOf(name: string, text: string): Readonly<Record<string, readonly string[]>> {
  const found = text.split(",").flatMap((each) => (each.trim() === "" ? [] : [each.trim()]));
  return found.length === 0 ? {} : { [name]: found };
}

export function Tokens() {
  const no = whyNot("admin", "book");
  const tokens = useList("tokens.list", {}, { off: no !== undefined });
  const [isMaking, setMaking] = useState(false);
  const [secret, setSecret] = useState<string | undefined>(undefined);
  const columns: readonly Column<Token>[] = [
    { head: "Token", cell: ({ name }) => <bdi>{name}</bdi>, width: "minmax(110px, 1.2fr)" },
    {
      head: "May",
      cell: ({ role, tenant }) => `${role} of ${tenant ?? "the whole book"}`,
      width: "minmax(130px, 1.2fr)",
    },
    { head: "State", cell: (token) => <Status status={stateOf(token)} />, width: "96px" },
    { head: "Made", cell: ({ createdAt }) => <Time at={createdAt} />, width: "92px", minor: true },
    {
      head: "Ends",
      cell: ({ expiresAt }) => (expiresAt === null ? "never" : <Time at={expiresAt} />),
      width: "92px",
      minor: true,
    },
    { head: "Last used", cell: ({ lastUsedAt }) => <Time at={lastUsedAt} />, width: "92px", minor: true },
    { head: "Actions", cell: (token) => <Revoke token={token} onDone={tokens.again} />, width: "90px", align: "right" },
  ];
  return (
    <Panel
      title="Tokens"
      note="who may use the book through a server"
      flush
      actions={
        <Button icon="plus" kind="main" whyNot={no} onPress={() => setMaking(true)}>
          New token
        </Button>
      }
    >
      {tokens.error === undefined ? null : <Failure error={tokens.error} />}
      <Table
        label="Tokens"
        rows={tokens.rows}
        columns={columns}
        idOf={({ id }) => id}
        onMore={tokens.onMore}
        isReading={!tokens.isKnown && no === undefined}
        empty={<p class="empty-line">{no ?? "No tokens yet."}</p>}
      />
      {isMaking ? (
        <MakeToken
          onClose={() => setMaking(false)}
          onMade={(made) => {
            setSecret(made);
            tokens.again();
          }}
        />
      ) : null}
      {secret === undefined ? null : (
        <Dialog title="The new token" onClose={() => setSecret(undefined)}>
          <p>It is shown this once. The book keeps only its hash.</p>
          <p class="row">
            <code class="grow secret">{secret}</code>
            <CopyButton text={secret} label="Copy the token" />
          </p>
        </Dialog>
      )}
    </Panel>
  );
}

function stateOf({ revokedAt, expiresAt }: Token): string {
  if (revokedAt !== null) return "revoked";
  return expiresAt !== null && expiresAt <= serverNow() ? "expired" : "active";
}

function Revoke({ token, onDone }: { readonly token: Token; readonly onDone: () => void }) {
  const [isAsking, setAsking] = useState(false);
  if (token.revokedAt !== null) return null;
  return (
    <>
      <Button whyNot={whyNot("admin", "book")} onPress={() => setAsking(true)}>
        Revoke
      </Button>
      {isAsking ? (
        <Confirm
          title={`Revoke ${token.name}`}
          act="Revoke"
          kind="danger"
          onClose={() => setAsking(false)}
          onAct={async () => {
            await ask("tokens.revoke", { id: token.id });
            onDone();
          }}
        >
          <p>Whoever uses it is refused from now on, and its streams end.</p>
        </Confirm>
      ) : null}
    </>
  );
}

function MakeToken({ onClose, onMade }: { readonly onClose: () => void; readonly onMade: (secret: string) => void }) {
  const [name, setName] = useState("");
  const [role, setRole] = useState<(typeof roles)[number]>("read");
  const [isWhole, setWhole] = useState(false);
  const [expires, setExpires] = useState("90d");
  const [of, setOf] = useState(tenant.value ?? caller.value?.tenant ?? "default");
  const [queues, setQueues] = useState("");
  const [names, setNames] = useState("");
  return (
    <Confirm
      title="New token"
      act="Make it"
      whyNot={
        name.trim() === "" ? "Give it a name" : !isWhole && of.trim() === "" ? "Say of which tenant it is" : undefined
      }
      onClose={onClose}
      onAct={async () => {
        const input = {
          name,
          role,
          ...(isWhole ? { wholeBook: true } : { for: of }),
          ...(expires === "" ? {} : { expires }),
          ...(role === "worker" ? { ...listOf("queues", queues), ...listOf("names", names) } : {}),
        };
        const made = await ask("tokens.create", input as unknown as VerbInput<"tokens.create">);
        onMade(made.secret);
      }}
    >
      <label class="field">
        <span>Name</span>
        <input
          type="text"
          placeholder="billing service"
          value={name}
          onInput={({ currentTarget }) => setName(currentTarget.value)}
        />
      </label>
      <label class="field">
        <span>Role</span>
        <select value={role} onChange={({ currentTarget }) => setRole(currentTarget.value as typeof role)}>
          {roles.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
        <small class="soft">{may[role]}</small>
      </label>
      {role === "worker" ? (
        <div class="columns narrow">
          <label class="field">
            <span>
              Only these queues <span class="faint">with commas</span>
            </span>
            <input type="text" value={queues} onInput={({ currentTarget }) => setQueues(currentTarget.value)} />
          </label>
          <label class="field">
            <span>
              Only these names <span class="faint">of jobs</span>
            </span>
            <input type="text" value={names} onInput={({ currentTarget }) => setNames(currentTarget.value)} />
          </label>
        </div>
      ) : null}
      {isWhole ? null : (
        <label class="field">
          <span>Tenant</span>
          <input type="text" value={of} onInput={({ currentTarget }) => setOf(currentTarget.value)} />
        </label>
      )}
      <label class="field">
        <span>Ends after</span>
        <input
          type="text"
          placeholder="never"
          value={expires}
          onInput={({ currentTarget }) => setExpires(currentTarget.value)}
        />
      </label>
      <div class="field check">
        <input
          id="whole-book"
          type="checkbox"
          checked={isWhole}
          onChange={({ currentTarget }) => setWhole(currentTarget.checked)}
        />
        <label htmlFor="whole-book">For the whole book, all tenants</label>
      </div>
    </Confirm>
  );
}
