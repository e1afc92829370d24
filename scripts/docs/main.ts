/**
 * Writes the pages that are made from the code: `npm run docs`.
 *
 * Run it after adding a setting, an endpoint, an error code or a metric, and commit what it wrote.
 */
import { writeFileSync } from "node:fs"
import { pagePath, referencePage } from "./referencePage.ts"

writeFileSync(new URL(`../../${pagePath}`, import.meta.url), referencePage())
