/** A view as a store of Svelte. */
import { derived } from "svelte/store"
import { viewStore } from "../../../src/client/svelte.ts"
import type { Live } from "../../../src/client.ts"

/** `{#each $titles as title}` in a component. */
export const titlesOf = (live: Live) =>
  derived(viewStore<{ readonly title: string }>(live, "incantation:posts"), ({ rows }) =>
    rows.map(({ title }) => title)
  )
