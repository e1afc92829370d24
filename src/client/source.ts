/**
 * Sources of a view and its token: the application's own function, or its handler of named views.
 *
 * A plain view is registered already; only a token is asked for, once for all views that need one at the same time. A
 * named view is registered by the application's server, which answers its id and its address.
 */
import { type Fault, fault, refusalOf, textOf } from "./faults.ts"
import type { World } from "./world.ts"

/** A token, and its lifetime in milliseconds from now; without a lifetime it is renewed when it is refused. */
export interface Token {
  readonly token: string
  readonly expires_in_ms?: number
}

/** Answer of a handler of named views: id of the registered view, its token, and the address of the service. */
export interface Grant extends Partial<Token> {
  readonly view: string
  /** Address of the service; if absent, the address given to `connect` is used. */
  readonly url?: string
}

/** Outcome of {@link Source.ask}. `retryAfterMs`: the delay that the server asked for. */
export type TokenAnswer =
  | { readonly grant: Grant }
  /** A failed request; if `isFinal`, repeating it does not help. */
  | { readonly fault: Fault; readonly isFinal: boolean; readonly retryAfterMs?: number | undefined }

/** Source of one view's token. */
export interface Source {
  /** Whether `ask` also registers the view, as for a named view. */
  readonly registers: boolean
  readonly ask: () => Promise<TokenAnswer>
}

/** The application's function: one token that opens all of `views`; undefined if there is none. */
export type TokenOf = (views: ReadonlyArray<string>) => Promise<Token | string | undefined>

/**
 * Source of the tokens of views that are registered already and followed by id. Without a function no token is sent.
 */
export const plainSource = (world: World, tokenOf: TokenOf | undefined): ((view: string) => Source) => {
  let waiting: Array<{ readonly view: string; readonly done: (asked: TokenAnswer) => void }> = []
  const flush = async (give: TokenOf): Promise<void> => {
    const asking = waiting
    waiting = []
    let asked: (view: string) => TokenAnswer
    try {
      const answer = await give(asking.map(({ view }) => view))
      const token = typeof answer === "string" ? { token: answer } : answer
      asked = (view) =>
        token === undefined || token === null || token.token === ""
          ? { fault: fault("TOKEN", "the application's `token` gave none"), isFinal: true }
          : { grant: { view, ...token } }
    } catch (error) {
      asked = () => ({ fault: fault("TOKEN", `the application's \`token\` failed: ${textOf(error)}`), isFinal: false })
    }
    for (const { done, view } of asking) done(asked(view))
  }
  return (view) => ({
    registers: false,
    ask: () =>
      tokenOf === undefined
        ? Promise.resolve({ grant: { view } })
        : new Promise((done) => {
            if (waiting.push({ view, done }) === 1) world.after(0, () => void flush(tokenOf))
          })
  })
}

/** Address of a handler of named views, or a function with the same result. */
export type NamedViews = string | ((name: string, params: object) => Promise<Grant>)

/** Source of views that the application's server declares. */
export const namedSource = (world: World, views: NamedViews, name: string, params: object): Source => ({
  registers: true,
  ask: async () => {
    try {
      if (typeof views === "function") return { grant: await views(name, params) }
      const answer = await world.fetch(views, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ view: name, params })
      })
      if (answer.ok) {
        const grant = (await answer.json()) as Partial<Grant> | null
        return typeof grant?.view === "string"
          ? { grant: grant as Grant }
          : { fault: fault("NOT_A_STREAM", `${views} answers no view; is it a handler of named views?`), isFinal: true }
      }
      const { fault: why, retryAfterMs, status } = await refusalOf(views, answer)
      return { fault: why, isFinal: status < 500 && status !== 408 && status !== 429, retryAfterMs }
    } catch (error) {
      return { fault: fault("TOKEN", `the view ${name} could not be asked for: ${textOf(error)}`), isFinal: false }
    }
  }
})
