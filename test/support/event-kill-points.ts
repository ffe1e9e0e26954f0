/** Between an event, its deliveries and their commit. */
export const eventKillPoints = ["events.said", "events.delivered"] as const;
