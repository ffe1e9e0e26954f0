// Random cron expressions, each with a naive reading of its own: sets of numbers and questions to a calendar.
import { fc } from "../support/property.ts";

type Part = { readonly text: string; has(value: number): boolean };
type DayPart = { readonly text: string; has(day: Temporal.PlainDate): boolean };

export type AnyCron = {
  readonly cron: string;
  isDay(day: Temporal.PlainDate): boolean;
  isTime(hour: number, minute: number): boolean;
};

function part(min: number, max: number): fc.Arbitrary<Part> {
  const value = fc.integer({ min, max });
  const item: fc.Arbitrary<Part> = fc.oneof(
    value.map((one) => ({ text: String(one), has: (other: number) => other === one })),
    fc.tuple(value, value, fc.integer({ min: 1, max: 5 })).map(([a, b, step]) => {
      const [low, high] = [Math.min(a, b), Math.max(a, b)];
      const text = step === 1 ? `${low}-${high}` : `${low}-${high}/${step}`;
      return { text, has: (other: number) => other >= low && other <= high && (other - low) % step === 0 };
    }),
    fc.integer({ min: 1, max: max - min + 1 }).map((step) => ({
      text: `*/${step}`,
      has: (other: number) => (other - min) % step === 0,
    })),
  );
  const list = fc.array(item, { minLength: 1, maxLength: 3 }).map((items) => ({
    text: items.map(({ text }) => text).join(","),
    has: (value: number) => items.some((each) => each.has(value)),
  }));
  return fc.oneof(fc.constant({ text: "*", has: () => true }), list);
}

const lengthOf = (day: Temporal.PlainDate) => day.daysInMonth;
const isWeekday = (day: Temporal.PlainDate) => day.dayOfWeek <= 5;

/** The working day nearest to a date, in its month, by looking one step further on each side. */
function nearWeekday(day: Temporal.PlainDate, date: number): boolean {
  if (date > lengthOf(day)) return false;
  const wanted = day.with({ day: date });
  const near = [0, -1, 1, -2, 2].map((days) => wanted.add({ days }));
  const chosen = near.find((each) => isWeekday(each) && each.month === day.month);
  return chosen?.equals(day) === true;
}

const dayOfMonth: fc.Arbitrary<DayPart> = fc.oneof(
  { weight: 3, arbitrary: part(1, 31).map(({ text, has }): DayPart => ({ text, has: (day) => has(day.day) })) },
  fc.constant<DayPart>({ text: "L", has: (day) => day.day === lengthOf(day) }),
  fc.constant<DayPart>({ text: "1,L", has: (day) => day.day === 1 || day.day === lengthOf(day) }),
  fc.constant<DayPart>({
    text: "LW",
    has: (day) => isWeekday(day) && !daysAfter(day).some(isWeekday),
  }),
  fc.integer({ min: 1, max: 31 }).map((date): DayPart => ({ text: `${date}W`, has: (day) => nearWeekday(day, date) })),
);

function daysAfter(day: Temporal.PlainDate): Temporal.PlainDate[] {
  return Array.from({ length: lengthOf(day) - day.day }, (_, index) => day.add({ days: index + 1 }));
}

const names = ["SUN", "mon", "Tue", "WED", "THU", "FRI", "SAT"];
const weekday = fc.integer({ min: 0, max: 6 });

const dayOfWeek: fc.Arbitrary<DayPart> = fc.oneof(
  {
    weight: 3,
    arbitrary: part(0, 6).map(({ text, has }): DayPart => ({ text, has: (day) => has(day.dayOfWeek % 7) })),
  },
  weekday.map((one): DayPart => ({ text: names[one] ?? "", has: (day) => day.dayOfWeek % 7 === one })),
  fc.constant<DayPart>({ text: "FRI-SUN", has: (day) => day.dayOfWeek >= 5 }),
  weekday.map((one): DayPart => ({
    text: `${one}L`,
    has: (day) => day.dayOfWeek % 7 === one && day.add({ days: 7 }).month !== day.month,
  })),
  fc.tuple(weekday, fc.integer({ min: 1, max: 5 })).map(([one, nth]): DayPart => ({
    text: `${names[one] ?? ""}#${nth}`,
    has: (day) => day.dayOfWeek % 7 === one && Math.ceil(day.day / 7) === nth,
  })),
);

/** January and July have 31 days, so that no combination of days is never due. */
const month = part(1, 12).map(({ text, has }): Part => {
  return text === "*"
    ? { text, has }
    : { text: `JAN,7,${text}`, has: (value) => value === 1 || value === 7 || has(value) };
});

export const anyCron: fc.Arbitrary<AnyCron> = fc
  .record({ minute: part(0, 59), hour: part(0, 23), date: dayOfMonth, month, weekday: dayOfWeek })
  .map((fields) => ({
    cron: `${fields.minute.text} ${fields.hour.text} ${fields.date.text} ${fields.month.text} ${fields.weekday.text}`,
    isTime: (hour, minute) => fields.hour.has(hour) && fields.minute.has(minute),
    isDay(day) {
      if (!fields.month.has(day.month)) return false;
      if (fields.date.text === "*") return fields.weekday.has(day);
      if (fields.weekday.text === "*") return fields.date.has(day);
      return fields.date.has(day) || fields.weekday.has(day);
    },
  }));
