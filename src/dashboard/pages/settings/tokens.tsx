import { useState } from "preact/hooks";
import type { VerbAnswer, VerbInput } from "../../../client/verbs.ts";
import { Button } from "../../parts/button.tsx";
import { CopyButton } from "../../parts/copy.tsx";
import { Confirm, Dialog } from "../../parts/dialog.tsx";
import { Failure, Panel } from "../../parts/page.tsx";
import { Status } from "../../parts/status.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { ask, whyNot } from "../../state/book.ts";
import { serverNow } from "../../state/clock.ts";
import { useList } from "../../state/use-list.ts";

type Token = VerbAnswer<"tokens.list">["items"][number];

const roles = ["read", "operate", "admin", "worker"] as const;

export function Tokens() {
  const tokens = useList("tokens.list", {});
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
        <Button icon="plus" kind="main" whyNot={whyNot("admin")} onPress={() => setMaking(true)}>
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
        isReading={!tokens.isKnown}
        empty={<p class="empty-line">No tokens yet.</p>}
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
      <Button whyNot={whyNot("admin")} onPress={() => setAsking(true)}>
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
  return (
    <Confirm
      title="New token"
      act="Make it"
      whyNot={name.trim() === "" ? "Give it a name" : undefined}
      onClose={onClose}
      onAct={async () => {
        const input = { name, role, ...(isWhole ? { book: true } : {}), ...(expires === "" ? {} : { expires }) };
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
      </label>
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
