/**
 * The command line of the SSP, read and acted on, without a process around it.
 *
 * What stands behind a command is a deed given from outside, so that only the reading is tried here.
 */
import { Effect, Either } from "effect"
import { expect, test } from "vitest"
import { noOptions } from "../../../kit/processes/setupCommand.ts"
import { Release } from "../../../src/ports/Release.ts"
import { read } from "../../../src/ssp/Config.ts"
import * as Cli from "../../../src/ssp/commands/Cli.ts"

const setupOf = (...args: ReadonlyArray<string>) =>
  Either.getOrThrowWith(Cli.parse(args), ({ message }) => new Error(message)).setup
const faultOf = (...args: ReadonlyArray<string>): string | undefined =>
  Either.match(Cli.parse(args), {
    onLeft: ({ exitCode, message }) => `${exitCode} ${message}`,
    onRight: () => undefined
  })

test("options of the setup are read with their values, behind = or as the next word, in any order", () => {
  expect(setupOf("--print-database-setup")).toEqual(noOptions)
  expect(setupOf("--async", "--install-database-setup", "--tables", "a, b", "--url=db.example:8667")).toEqual({
    ...noOptions,
    mode: "async",
    tables: ["a", "b"],
    url: "http://db.example:8667"
  })
  expect(
    [["--feed=events"], ["--feed", "changes"], ["--async", "--feed", "events"]].map(
      (feed) => setupOf("--print-database-setup", ...feed).mode
    )
  ).toEqual(["sync", "changes", "async"])
  expect(setupOf("--print-database-setup", "--tables=a", "--tables", "b,a", "--with-secret").tables).toEqual(["a", "b"])
})

test("D5a options that are unknown, have no value, or stand without a command are faults that say what would do", () => {
  expect(faultOf("--print-databse-setup")).toMatch(/^2 [^]*did you mean --print-database-setup\?/)
  expect(faultOf("--print-database-setup", "--tables")).toMatch(/--tables is ""; must be table names/)
  expect(faultOf("--print-database-setup", "--url", "ftp://x")).toMatch(/--url is "ftp:\/\/x"; must be host:port/)
  expect(faultOf("--async")).toMatch(/--async only goes with --print-database-setup, --install-database-setup/)
  expect(faultOf("--check-integrity", "--tables", "a", "--with-secret")).toMatch(
    /--with-secret only goes with --print-database-setup$/
  )
  expect(faultOf("--check-config", "--tables", "a")).toMatch(/--tables only goes with/)
})

test("a command on the setup is handed the configuration and what was said; nothing is served then, and only then", async () => {
  const done: Array<string> = []
  const deeds: Cli.Actions<void, never, never> = {
    serve: () => Effect.sync(() => void done.push("served")),
    files: Effect.sync(() => void done.push("files")),
    health: ({ listen: { host, port } }, path) => Effect.sync(() => void done.push(`asked ${host}:${port}${path}`)),
    work: (config, command, options) =>
      Effect.sync(() => void done.push(`${command} ${options.mode} for ${config.sspId}`))
  }
  const config = read({ env: { SSP_ID: "one" }, file: undefined, readText: () => ({ fault: "" }), hostName: "h" }, "u")
  for (const args of [
    ["--install-database-setup", "--async"],
    ["--print-database-setup"],
    ["--health"],
    ["--check-config"],
    []
  ])
    await Effect.runPromise(Effect.provide(Cli.main(args, deeds, config), Release.layerOf("1.2.3")))
  expect(done).toEqual([
    "install async for one",
    "print undefined for one",
    "asked 127.0.0.1:8667/version",
    "files",
    "served"
  ])
})

test("--help names every option", () => {
  for (const option of [
    "--print-database-setup",
    "--install-database-setup",
    "--remove-database-setup",
    "--check-integrity",
    "--async",
    "--tables",
    "--url",
    "--with-secret"
  ])
    expect(Cli.help("1")).toContain(option)
})
