// What is done with the book itself; these are called without a noun.
import { verb } from "./verb.ts";

export const book = {
  metrics: verb({
    words: "metrics",
    http: "GET /metrics",
    role: "read",
    text: true,
    about: "print metrics as Prometheus reads them",
    more: `The text is Prometheus' own, of the tenant that the book is seen as. Counters only grow, whatever
retention removes.`,
    input: {},
    examples: ["metrics --tenant acme"],
    run: (of) => of.metrics(),
    show: (text) => text,
  }),
};
