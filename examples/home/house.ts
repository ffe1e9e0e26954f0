// The simulated house: a real one would talk to its lamps and motors here.
export const house = {
  lights: new Set<string>(),
  blinds: "closed" as "open" | "closed",
  somebodyHome: true,
};

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/** About when the sun rises and sets on the day of this moment, in UTC; good enough for blinds. */
export function sunOn(at: number): { readonly rise: number; readonly set: number } {
  const midnight = Math.floor(at / dayMs) * dayMs;
  const dayOfYear = (midnight - Date.UTC(new Date(at).getUTCFullYear(), 0, 1)) / dayMs;
  const halfDayMs = (6 + 2.5 * Math.sin((2 * Math.PI * (dayOfYear - 80)) / 365)) * hourMs;
  return { rise: Math.round(midnight + 12 * hourMs - halfDayMs), set: Math.round(midnight + 12 * hourMs + halfDayMs) };
}
