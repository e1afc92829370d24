/**
 * Types of a call through the outbox: the connection, the options, and `run` over generated backends.
 */

/** The part of a database connection that the outbox uses; the official SDK's `Surreal` has it. */
export interface Connection {
  readonly query: (statements: string, bindings: Record<string, unknown>) => PromiseLike<ReadonlyArray<unknown>>
}

/** Options of a job. */
export interface RunOptions {
  /** Record id to link the job to. */
  readonly assignedTo?: string
  readonly max_retries?: number
  readonly retry_strategy?: "linear" | "exponential"
}

/** Backends with their routes and the payload of each, as `jobs types` generates them. */
export type AnyBackends = { readonly [backend: string]: { readonly [path: string]: unknown } }

/** Writes jobs for the backends `T`. */
export interface Outbox<T = AnyBackends> {
  /** Checks the call and writes the job record; answers its id. Rejects with a class of `errors.ts`. */
  readonly run: <B extends keyof T & string, P extends keyof T[B] & string>(
    backend: B,
    path: P,
    payload: T[B][P],
    options?: RunOptions
  ) => Promise<string>
}
