/**
 * Which schedulers a standby scheduler reaches, and whether clients reach it, for `core/cluster/term.ts` (D70).
 *
 * Asks for `/livez`, which every scheduler answers without a secret; any status counts as an answer.
 */
import * as HttpClient from "@effect/platform/HttpClient"
import { Duration, Effect } from "effect"
import { apartMs, type Contact, type Contacts } from "../../core/cluster/term.ts"
import type { LogMember } from "../../ports/SharedLog.ts"

type Other = Pick<LogMember, "self" | "url">

interface Answers {
  /** Steady times: of the first question, and of the last answer. */
  readonly since: number
  readonly answeredAt: number | undefined
}

const lastOf = ({ answeredAt, since }: Answers): number => answeredAt ?? since

export class Reachability {
  private readonly client: HttpClient.HttpClient
  private readonly contacts = new Map<string, Answers>()
  private askedAt = Number.NEGATIVE_INFINITY

  constructor(
    client: HttpClient.HttpClient,
    private readonly leaseMs: number,
    private readonly now: () => number
  ) {
    // A span for each question would flood the trace collector.
    this.client = HttpClient.withTracerDisabledWhen(client, () => true)
  }

  /** Called for each request that came from a client and not from another scheduler. */
  readonly asked = (): void => {
    this.askedAt = this.now()
  }

  /**
   * Whether a client has asked lately, and later than half a lease after `heardAt`: until then the silent schedulers
   * may still have answered clients.
   */
  private isAskedSince(heardAt: number): boolean {
    return this.now() - this.askedAt < apartMs({ leaseMs: this.leaseMs }) && this.askedAt > heardAt + this.leaseMs / 2
  }

  private answers({ answeredAt }: Answers): boolean {
    return answeredAt !== undefined && this.now() - answeredAt < this.leaseMs
  }

  private isSilent(contact: Answers): boolean {
    return this.now() - lastOf(contact) >= this.leaseMs
  }

  /** Which members are reached, and whether the leader is silent. `leader` undefined: there is none. */
  ways(leader: string | undefined): Omit<Contacts, "self"> {
    const { contacts } = this
    const missed = leader === undefined ? undefined : contacts.get(leader)
    return {
      reaches: [...contacts].flatMap(([self, contact]) => (this.answers(contact) ? [self] : [])),
      misses: missed !== undefined && this.isSilent(missed) ? leader : undefined,
      isAsked: missed !== undefined && this.isAskedSince(lastOf(missed))
    }
  }

  get standing(): Contact {
    const all = [...this.contacts.values()]
    if (all.length === 0 || !all.every((contact) => this.isSilent(contact))) return "near"
    return this.isAskedSince(Math.max(...all.map(lastOf))) ? "asked" : "apart"
  }

  private ask({ self, url }: Other): Effect.Effect<void> {
    return Effect.suspend(() => {
      const since = this.now()
      if (!this.contacts.has(self)) this.contacts.set(self, { since, answeredAt: undefined })
      return this.client.get(`${url}/livez`).pipe(
        Effect.flatMap(({ text }) => text),
        Effect.timeout(Duration.millis(this.leaseMs / 2)),
        Effect.andThen(() => void this.contacts.set(self, { since, answeredAt: this.now() })),
        Effect.ignore
      )
    })
  }

  /** Asks the other schedulers in rounds, for ever. */
  asking(others: () => ReadonlyArray<Other>): Effect.Effect<never> {
    const round = Effect.suspend(() => {
      const now = others()
      for (const self of this.contacts.keys()) if (!now.some((other) => other.self === self)) this.contacts.delete(self)
      return Effect.forEach(now, (other) => this.ask(other), { concurrency: "unbounded", discard: true })
    })
    return Effect.forever(Effect.zipRight(round, Effect.sleep(Duration.millis(this.leaseMs / 6))))
  }
}
