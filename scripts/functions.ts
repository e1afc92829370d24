/**
 * Writes the list of functions into docs/language.md: `npx vite-node scripts/functions.ts`.
 *
 * Why so: the list is the table the evaluator calls; a test fails while the page has another.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { functionsTable, replaced } from "./docs/functionsTable.ts"

const page = new URL("../docs/language.md", import.meta.url)
writeFileSync(page, replaced(readFileSync(page, "utf8"), functionsTable()))
