/**
 * The board's posts in React with StrictMode, as a script for a real browser: a row counts how often it is rendered.
 */
import { createElement, type FunctionComponent, memo, StrictMode } from "react"
import type { Views } from "../../scripts/start/board/views.ts"
import { useView } from "../../src/client/react.ts"
import { connect } from "../../src/client.ts"

type Post = Views["posts"]["row"]

/** Ids of the rows that were rendered, for the test to read and clear. */
const rendered: Array<string> = []

const Row = memo(({ post }: { readonly post: Post }) => {
  rendered.push(post.id)
  return createElement("li", null, `${post.title}: ${post.votes}, ${post.comments.length}`)
})

const live = connect<Views>({ views: "/views" })

const Posts: FunctionComponent = () => {
  const { rows, status } = useView<Views, "posts">(live, "posts", { page: 0 })
  const items = rows.map((post) => createElement(Row, { key: post.id, post }))
  return createElement("ol", { id: "react", "data-status": status }, ...items)
}

interface Page {
  rendered: unknown
  readonly document: {
    readonly createElement: (tag: string) => object
    readonly body: { readonly append: (element: object) => void }
  }
}
// `as string`, because its types need those of a browser.
const { createRoot } = (await import("react-dom/client" as string)) as {
  readonly createRoot: (element: unknown) => { readonly render: (node: unknown) => void }
}
const page = globalThis as unknown as Page
page.rendered = rendered
const element = page.document.createElement("div")
page.document.body.append(element)
createRoot(element).render(createElement(StrictMode, null, createElement(Posts)))
