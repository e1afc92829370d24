/** A list in React, whose rows render when they change. */
import { createElement, memo } from "react"
import { useView } from "../../../src/client/react.ts"
import type { Live } from "../../../src/client.ts"

interface Post {
  readonly id: string
  readonly title: string
}

const Row = memo(({ post }: { readonly post: Post }) => createElement("li", null, post.title))

export const Posts = ({ live }: { readonly live: Live }) => {
  const { rows, status } = useView<Post>(live, "incantation:posts")
  return createElement(
    "ul",
    { "data-status": status },
    ...rows.map((post) => createElement(Row, { key: post.id, post }))
  )
}
