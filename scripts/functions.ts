/**
 * Writes the list of functions into README: `npx vite-node scripts/functions.ts`.
 *
 * Why so: the list is the table the evaluator calls; a test fails while README has another.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { functionsTable, replaced } from "../test/kit/functionsTable.ts"

const readme = new URL("../README.md", import.meta.url)
writeFileSync(readme, replaced(readFileSync(readme, "utf8"), functionsTable()))
