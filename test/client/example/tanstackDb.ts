/** A view as a collection of TanStack DB. */
import { createCollection } from "@tanstack/db"
import { viewCollection } from "../../../src/client/tanstack-db.ts"
import type { Live } from "../../../src/client.ts"

interface Post {
  readonly id: string
  readonly title: string
}

export const postsOf = (live: Live) =>
  createCollection(viewCollection<Post>({ live, view: "incantation:posts", getKey: ({ id }) => id }))
