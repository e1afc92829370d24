/**
 * The page of the board: two views that are followed, what they hold put into the document, and edits sent.
 *
 * An application imports `connect` from "surreal-live-sidecar/client". A row that did not change is the very object that
 * it was before, so that the page looks at what changed and touches nothing else.
 */
import { connect } from "../../../../src/client.ts"
import { postsPerPage } from "../paging.ts"
import type { Views } from "../views.ts"

type Post = Views["posts"]["row"]
type Comment = Post["comments"][number]
type Reply = Comment["replies"][number]

const live = connect<Views>({ views: "/views" })
const totals = live.follow("totals", {})
let page = 0
let posts = live.follow("posts", { page })

const find = <E extends Element = HTMLElement>(selector: string, within: ParentNode = document): E =>
  within.querySelector<E>(selector)!

/** Rows as elements show them. */
const shown = new WeakMap<Element, object>()

/**
 * Gives `parent` a child for each row, in order. The child of a row stays with the row's id, made of the template `kind`
 * at first; `fill` is called for rows that are new or changed.
 */
const show = <Row extends { readonly id: string }>(
  parent: Element,
  kind: string,
  rows: ReadonlyArray<Row>,
  fill: (element: HTMLElement, row: Row) => void
): void => {
  const ids = new Set(rows.map(({ id }) => id))
  const known = new Map<string, HTMLElement>()
  for (const element of [...parent.children] as Array<HTMLElement>) {
    if (ids.has(element.dataset["id"]!)) known.set(element.dataset["id"]!, element)
    else element.remove()
  }
  let next = parent.firstElementChild
  for (const row of rows) {
    let element = known.get(row.id)
    if (element === undefined) {
      element = find<HTMLTemplateElement>(`#${kind}`).content.firstElementChild!.cloneNode(true) as HTMLElement
      element.dataset["id"] = row.id
    }
    if (shown.get(element) !== row) {
      fill(element, row)
      shown.set(element, row)
    }
    if (element === next) next = element.nextElementSibling
    else parent.insertBefore(element, next)
  }
}

/** Puts a text where it is not yet, and has it glow for a moment where another one was. */
const write = (within: HTMLElement, selector: string, text: string | number): void => {
  const element = find(selector, within)
  if (element.textContent === String(text)) return
  if (element.textContent !== "") element.animate([{ background: "#f0a55288" }, {}], 900)
  element.textContent = String(text)
}

const fillReply = (element: HTMLElement, { author, text }: Reply): void => {
  write(element, ".author", author)
  write(element, ".text", text)
}

const fillComment = (element: HTMLElement, comment: Comment): void => {
  fillReply(element, comment)
  show(find(".replies", element), "reply", comment.replies, fillReply)
}

const fillPost = (element: HTMLElement, { author, comments, title, votes }: Post): void => {
  write(element, ".title", title)
  write(element, ".author", author)
  write(element, ".votes", votes)
  show(find(".comments", element), "comment", comments, fillComment)
}

const showPosts = (): void => {
  const { error, rows, status } = posts.state
  const pill = find("#status")
  pill.className = pill.textContent = status
  pill.title = error?.message ?? "what is shown is what the server has"
  // Before another page has come the one before stays.
  if (status === "loading") return
  const typing = document.activeElement as HTMLElement | null
  show(find("#posts"), "post", rows, fillPost)
  // A browser takes the focus from what is moved.
  if (typing?.isConnected === true) typing.focus({ preventScroll: true })
}

const showTotals = (): void => {
  const { posts: count = 0, votes = 0 } = totals.rows[0] ?? {}
  const last = Math.max(0, Math.ceil(count / postsPerPage) - 1)
  if (totals.status !== "loading") find("#totals").textContent = `${count} posts · ${votes} votes`
  find("#page").textContent = `page ${page + 1} of ${Math.max(last, page) + 1}`
  find<HTMLButtonElement>("[data-turn='-1']").disabled = page === 0
  find<HTMLButtonElement>("[data-turn='1']").disabled = page >= last
}

/** Another page is another view; the one before is let go a little later, and is there at once for who comes back. */
const turn = (by: number): void => {
  const before = posts
  page += by
  posts = live.follow("posts", { page })
  posts.subscribe(showPosts)
  before.dispose()
  showPosts()
  showTotals()
}

/** Nothing is shown before the service has it: what it shows then comes as for everybody else. */
const edit = async (what: { readonly [field: string]: unknown }): Promise<void> => {
  const trouble = find("#trouble")
  const answer = await fetch("/edits", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(what)
  }).catch(() => undefined)
  trouble.hidden = answer?.ok === true
  if (answer?.ok !== true)
    trouble.textContent = `Not done: ${answer === undefined ? "the board cannot be reached" : (await answer.json()).message}`
}

const idAround = (element: Element): string => element.closest<HTMLElement>("[data-id]")?.dataset["id"] ?? ""

document.addEventListener("submit", (event) => {
  event.preventDefault()
  const form = event.target as HTMLFormElement
  void edit({ kind: form.dataset["kind"], about: idAround(form), ...Object.fromEntries(new FormData(form)) })
  form.reset()
})
document.addEventListener("click", ({ target }) => {
  const button = (target as Element).closest<HTMLElement>("button")
  const { kind, turn: by } = button?.dataset ?? {}
  if (by !== undefined) turn(Number(by))
  else if (button !== null && kind !== undefined) void edit({ kind, post: idAround(button) })
})
posts.subscribe(showPosts)
totals.subscribe(showTotals)
