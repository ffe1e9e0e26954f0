import { Page, Tabs } from "../../parts/page.tsx";
import { useUrl } from "../../state/url.ts";
import { Audit } from "./audit.tsx";
import { Backups } from "./backups.tsx";
import { Data } from "./data.tsx";
import { Doctor } from "./doctor.tsx";
import { Operations } from "./operations.tsx";
import { Retention } from "./retention.tsx";
import { Tokens } from "./tokens.tsx";
import { Upkeep } from "./upkeep.tsx";

const tabs = [
  { id: "data", text: "Data", shown: Data },
  { id: "tokens", text: "Tokens", shown: Tokens },
  { id: "retention", text: "Retention", shown: Retention },
  { id: "backups", text: "Backups", shown: Backups },
  { id: "doctor", text: "Doctor", shown: Doctor },
  { id: "upkeep", text: "Upkeep", shown: Upkeep },
  { id: "operations", text: "Operations", shown: Operations },
  { id: "audit", text: "Audit", shown: Audit },
] as const;

export function Settings() {
  const url = useUrl();
  const current = url.get("tab") ?? "data";
  const Shown = (tabs.find(({ id }) => id === current) ?? tabs[0]).shown;
  return (
    <Page title="Settings and data" asks={{ verb: "book.info", input: {} }}>
      <Tabs label="What" tabs={tabs} current={current} onChoose={(id) => url.set({ tab: id }, { push: true })} />
      <Shown />
    </Page>
  );
}
