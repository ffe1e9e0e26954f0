import { Button } from "../parts/button.tsx";
import { Icon } from "../parts/icon.tsx";
import { Menu } from "../parts/menu.tsx";
import { caller, logOut, tenant } from "../state/book.ts";
import { theme, zone, type Theme, type Zone } from "../state/settings.ts";
import { useVerb } from "../state/use-verb.ts";
import { useUrl } from "../state/url.ts";
import { LiveChip } from "./live-chip.tsx";

type TopBarProps = { readonly onMenu: () => void; readonly onPalette: () => void; readonly onHelp: () => void };

export function TopBar({ onMenu, onPalette, onHelp }: TopBarProps) {
  const known = caller.value;
  return (
    <header class="top">
      <button type="button" class="button quiet bare only-narrow" aria-label="Pages" onClick={onMenu}>
        <Icon name="menu" />
      </button>
      <button type="button" class="jump" onClick={onPalette}>
        <Icon name="search" size={14} />
        <span class="grow cut">Go to a page, an id, a name</span>
        <kbd>Ctrl K</kbd>
      </button>
      <span class="grow" />
      {known !== null && known.tenant === null ? <TenantSwitch /> : null}
      <LiveChip />
      <Menu label={`Time zone, theme and ${known?.name ?? "login"}`} icon="settings">
        <Choice<Zone>
          label="Times are shown in"
          options={[
            ["local", "this browser's zone"],
            ["utc", "UTC"],
            ["schedule", "the schedule's own zone"],
          ]}
          value={zone.value}
          onChoose={(value) => (zone.value = value)}
        />
        <Choice<Theme>
          label="Theme"
          options={[
            ["auto", "as the system has it"],
            ["light", "light"],
            ["dark", "dark"],
          ]}
          value={theme.value}
          onChoose={(value) => (theme.value = value)}
        />
        {known === null ? null : (
          <div class="menu-note">
            <p class="small soft">
              <bdi>{known.name}</bdi>, {known.role} of {known.tenant ?? "the whole book"}
            </p>
            <Button onPress={logOut}>Log out</Button>
          </div>
        )}
      </Menu>
      <Button kind="quiet" label="Keys and help (?)" onPress={onHelp}>
        ?
      </Button>
    </header>
  );
}

function TenantSwitch() {
  const url = useUrl();
  const { data } = useVerb("book.tenants", {}, { everyMs: 30_000 });
  const names = [...new Set(["default", ...(data?.items ?? []).map((each) => each.tenant), tenant.value ?? "default"])];
  if (names.length < 2) return null;
  return (
    <label class="switch">
      <span class="sr">Tenant</span>
      <select
        value={tenant.value ?? "default"}
        onChange={({ currentTarget }) => {
          const chosen = currentTarget.value === "default" ? null : currentTarget.value;
          tenant.value = chosen;
          url.set({ tenant: chosen, after: null });
        }}
      >
        {names.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
}

type ChoiceProps<Value extends string> = {
  readonly label: string;
  readonly options: readonly (readonly [value: Value, text: string])[];
  readonly value: Value;
  readonly onChoose: (value: Value) => void;
};

function Choice<Value extends string>({ label, options, value, onChoose }: ChoiceProps<Value>) {
  return (
    <fieldset class="choice">
      <legend>{label}</legend>
      {options.map(([each, text]) => (
        <label key={each}>
          <input type="radio" name={label} checked={each === value} onChange={() => onChoose(each)} /> {text}
        </label>
      ))}
    </fieldset>
  );
}
