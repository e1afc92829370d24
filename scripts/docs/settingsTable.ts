/**
 * Tables of settings, made from the settings the code declares.
 *
 * Why made and compared: a table typed by hand lags behind the code on the first busy day.
 */
import type { Knob, Knobs } from "../../src/core/settings/settings.ts"

/** Text of a cell; `<uuid>` outside code would be taken for a tag and not shown. */
export const cell = (text: string): string =>
  text
    .replaceAll("|", "\\|")
    .split("`")
    .map((part, n) => (n % 2 === 0 ? part.replaceAll("<", "\\<") : part))
    .join("`")

/** A table as Markdown. */
export const table = (head: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string =>
  [head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n")

const nameOf = (knob: Knob<unknown>): string => `\`${knob.env}\`${knob.secret ? `, \`${knob.env}_FILE\`` : ""}`

const defaultOf = (knob: Knob<unknown>): string =>
  cell(knob.defaultText === "" ? "unset" : `${knob.defaultText}${knob.unit === "" ? "" : ` ${knob.unit}`}`)

/** One row per setting: variable, default with unit, what is allowed, meaning. */
export const settingsTable = (knobs: Knobs): string =>
  table(
    ["Setting", "Default", "Allowed", "Meaning"],
    Object.values(knobs).map((knob) => [nameOf(knob), defaultOf(knob), cell(knob.allowed), cell(knob.meaning)])
  )

/** One row per setting as README shows some of them: without what is allowed. */
export const shortRows = (knobs: Knobs): ReadonlyArray<string> =>
  Object.values(knobs).map((knob) => `| ${[nameOf(knob), defaultOf(knob), cell(knob.meaning)].join(" | ")} |`)
