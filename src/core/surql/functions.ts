/**
 * All functions of the language by name.
 *
 * Why so: one table, so that the parser can refuse unknown names with the closest known ones, the analysis knows what is pure,
 * and the list in the README is generated.
 */
import { base } from "./functions/base.ts"
import type { Fn } from "./functions/define.ts"

/** Name (lower case, full path) to function. */
export const functions: ReadonlyMap<string, Fn> = new Map([base].flatMap((table) => Object.entries(table)))
