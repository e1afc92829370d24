/**
 * README's settings table, made from the settings the code declares.
 *
 * Why made and compared: a table typed by hand lags behind the code on the first busy day.
 */
import type { Knobs } from "../../src/core/settings.ts"

const cell = (text: string): string => text.replaceAll("|", "\\|")

/** One row per setting: variable, default with unit, meaning with what is allowed. */
export const settingsTable = (knobs: Knobs): string => [
  "| Setting | Default | Meaning |",
  "|---|---|---|",
  ...Object.values(knobs).map((knob) => {
    const name = `\`${knob.env}\`${knob.secret ? `, \`${knob.env}_FILE\`` : ""}`
    const fallback = knob.defaultText === "" ? "unset" : `${knob.defaultText}${knob.unit === "" ? "" : ` ${knob.unit}`}`
    return `| ${name} | ${cell(fallback)} | ${cell(knob.meaning)} |`
  }),
].join("\n")
