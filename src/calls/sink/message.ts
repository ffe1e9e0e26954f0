// What a sink hands to the outside, and the id under which the other side knows a repeat.

/** The names of sinks among the listeners begin with this. */
export const sinkPrefix = "sink:";

/** An event as CloudEvents 1.0 writes it. */
export type CloudEvent = {
  readonly specversion: "1.0";
  /** The event's id: the same on every repeat. */
  readonly id: string;
  readonly source: string;
  readonly type: string;
  readonly time: string;
  /** The event's key: what it is about. */
  readonly subject?: string;
  readonly datacontenttype: "application/json";
  readonly data: unknown;
};

/** The media type of a CloudEvent that is one JSON document, envelope and data together. */
export const cloudEventsJson = "application/cloudevents+json";

type Named = { readonly tenant: string; readonly id: string };

// An event's id may be the program's own: any text, and two tenants may have the same one. As a header it must be plain, and
// whoever drops repeats by it must never drop another tenant's event. No tenant has a "/" in its name, and none is left in an
// encoded id, so no two of them meet.

/** The id for a receiver of its own: the event's id as it is, if it is a plain one of the first tenant. */
export function receiverId({ tenant, id }: Named): string {
  return tenant === "default" ? encodeURIComponent(id) : `${tenant}/${encodeURIComponent(id)}`;
}

/** The id where several sinks may meet: a stream drops what it knows already, also when it came for another subject. */
export function streamId(sink: string, { tenant, id }: Named): string {
  return `${encodeURIComponent(sink)}/${tenant}/${encodeURIComponent(id)}`;
}
