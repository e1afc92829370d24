/**
 * Addresses of stores, as `STORE_ADDR` takes them.
 *
 * A scheme that asks for TLS must never become one that does not, and what is not understood must not be guessed.
 */
import { expect, test } from "vitest"
import * as Address from "../../src/core/settings/address.ts"

test("D22 the address says which store it is, and keeps its scheme", () => {
  const rows: ReadonlyArray<readonly [string, Address.Store]> = [
    ["memory://", { kind: "memory" }],
    ["ws://db:8000", { kind: "server", url: "ws://db:8000/rpc" }],
    ["ws://db:8000/rpc", { kind: "server", url: "ws://db:8000/rpc" }],
    ["wss://db.example/base/", { kind: "server", url: "wss://db.example/base/rpc" }],
    ["WSS://Db.Example:443", { kind: "server", url: "wss://db.example/rpc" }],
    ["http://127.0.0.1:8000", { kind: "server", url: "http://127.0.0.1:8000/rpc" }],
    ["https://[::1]:8000/rpc/", { kind: "server", url: "https://[::1]:8000/rpc" }],
    ["localhost:8000", { kind: "server", url: "ws://localhost:8000/rpc" }],
    ["localhost:8000/rpc", { kind: "server", url: "ws://localhost:8000/rpc" }],
    ["[::1]:8000", { kind: "server", url: "ws://[::1]:8000/rpc" }],
    ["mem://", { kind: "embedded", url: "mem://" }],
    ["surrealkv://./data/my db", { kind: "embedded", url: "surrealkv://./data/my db" }],
    ["surrealkv:///var/db?versioned=true", { kind: "embedded", url: "surrealkv:///var/db?versioned=true" }],
    ["rocksdb:///var/db", { kind: "embedded", url: "rocksdb:///var/db" }]
  ]
  for (const [text, expected] of rows) expect(Address.store(text), text).toEqual(expected)
})

test("D22 a text that is no store address, or holds a password, is refused", () => {
  for (const text of [
    "",
    "db",
    ":8000",
    "db:99999",
    "ftp://db:1",
    "mem://x",
    "surrealkv://",
    "surrealkv+versioned://x",
    "ws://",
    "ws://user:pass@db:8000",
    "wss://db?x=1",
    "http://db/#a",
    "memory://x",
    "tikv://db:1"
  ]) {
    expect(Address.store(text), text).toBeUndefined()
  }
})
