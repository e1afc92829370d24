/**
 * The Merkle tree of D41 as a reader of the decisions computes it, for the endpoints of both servers.
 *
 * Why a second time: a tree that only agrees with itself proves nothing.
 */
import { blake3 } from "@noble/hashes/blake3.js"
import { expect } from "vitest"
import { create } from "../data/registration.ts"

const hash = (text: string): string => Buffer.from(blake3(Buffer.from(text))).toString("hex")

/** Hash of what holds nothing. */
export const nothing = "0".repeat(64)

/** 500 records of `item`, and one of `other`. */
export const sample = [
  ...Array.from({ length: 500 }, (_, i) => create(`item:${i}`, { n: i })),
  create("other:x", { a: "b", list: [1, 2] })
]

/** The one record of `other`, from its leaf up to the root; `get` asks `/integrity` with a query. */
export const leafToRoot = async (get: (query: string) => Promise<unknown>): Promise<void> => {
  const [high = 0, low = 0] = blake3(Buffer.from("other:x"))
  const leaf = hash('other:x\u0000{"a":"b","list":[1,2]}')
  const bucket = hash(leaf)
  expect(await get(`?table=other&level=2&index=${high * 256 + low}`)).toMatchObject({
    hash: bucket,
    count: 1,
    records: [{ id: "other:x", hash: leaf, version: 1 }]
  })
  const inner = hash(Buffer.from([low]).toString("hex") + bucket)
  expect(await get(`?table=other&level=1&index=${high}`)).toMatchObject({
    hash: inner,
    count: 1,
    children: [{ index: high * 256 + low, hash: bucket, count: 1 }]
  })
  expect(await get("?table=other")).toMatchObject({
    level: 0,
    index: 0,
    hash: hash(Buffer.from([high]).toString("hex") + inner),
    count: 1
  })
}
