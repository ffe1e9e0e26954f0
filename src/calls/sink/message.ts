// What a sink sends, and the id by which the receiver recognises a repeat.

/** A sink is a listener whose name begins with this. */
export const sinkPrefix = "sink:";

/** An event in the format of CloudEvents 1.0. */
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

/** The media type of a CloudEvent as one JSON document. */
export const cloudEventsJson = "application/cloudevents+json";

type Named = { readonly tenant: string; readonly id: string };

// A program may choose any text as an event's id, and two tenants may choose the same. As a header the id must be plain ASCII,
// and a receiver that drops repeats by it must never drop another tenant's event. Neither a tenant's name nor an encoded id
// has a "/", so two ids never collide.

/** The id for a receiver of one sink. A plain id of the default tenant stays as it is. */
export function receiverId({ tenant, id }: Named): string {
  return tenant === "default" ? encodeURIComponent(id) : `${tenant}/${encodeURIComponent(id)}`;
}

/** The id for a stream that several sinks may share: a stream drops an id that it knows, even under another subject. */
export function streamId(sink: string, { tenant, id }: Named): string {
  return `${encodeURIComponent(sink)}/${tenant}/${encodeURIComponent(id)}`;
}
