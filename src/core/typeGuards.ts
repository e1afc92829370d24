/** Type guards for values from outside: JSON, YAML and rows of a store. */

/** A whole number from 0 that JavaScript holds exactly: positions, versions, counts. */
export const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0

export const isText = (value: unknown): value is string => typeof value === "string"

export interface Mapping {
  readonly [key: string]: unknown
}

/** An object with keys, as of JSON or YAML. */
export const isMapping = (value: unknown): value is Mapping =>
  typeof value === "object" && value !== null && !Array.isArray(value)
