// How many columns of a terminal a text takes.

const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });

// The scripts whose characters are two columns wide, and emoji.
const twoWide =
  /^(?:\p{Emoji_Presentation}|[\u1100-\u115F\u2E80-\u303E\u3041-\uA4CF\uA960-\uA97C\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF01-\uFF60\uFFE0-\uFFE6]|[\u{20000}-\u{3FFFD}])/u;

export function widthOf(text: string): number {
  // Most texts are plain.
  if (/^[\u0020-\u007E]*$/.test(text)) return text.length;
  return [...graphemes.segment(text)].reduce((width, { segment }) => width + charWidth(segment), 0);
}

/** At most so wide; what was cut off is marked. */
export function cutTo(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let kept = "";
  let used = 0;
  for (const { segment } of graphemes.segment(text)) {
    used += charWidth(segment);
    if (used > width - 1) break;
    kept += segment;
  }
  return `${kept.trimEnd()}…`;
}

function charWidth(grapheme: string): number {
  if (/^[\p{Mn}\p{Me}\p{Cf}]+$/u.test(grapheme)) return 0;
  return twoWide.test(grapheme) ? 2 : 1;
}
