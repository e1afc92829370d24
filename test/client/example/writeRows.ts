/** Types of the rows, for a step of the build that writes them into a file. */
import { rowTypes } from "../../../src/views.ts"
import { views } from "./views.ts"

/** `schema`: an export of the database, or its `DEFINE FIELD` statements. */
export const rowsFor = (schema: string): Promise<string> =>
  rowTypes(views, { schema, samples: { posts: [{ channel: "news" }, { id: "ann", channels: ["news"] }] } })
