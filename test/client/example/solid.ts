/** A view as a signal of Solid. */
import { createEffect, createRoot } from "solid-js"
import { createView } from "../../../src/client/solid.ts"
import type { Live } from "../../../src/client.ts"

/** In a component the owner is there already, and so is the end. */
export const showPosts = (live: Live, show: (line: string) => void): (() => void) =>
  createRoot((dispose) => {
    const posts = createView<{ readonly title: string }>(live, "incantation:posts")
    createEffect(() =>
      show(
        posts()
          .rows.map(({ title }) => title)
          .join(", ")
      )
    )
    return dispose
  })
