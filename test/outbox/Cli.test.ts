/**
 * The command line of jobs: what is understood, and how what is not is refused.
 *
 * Apart from the processes, because every refusal is a line here and half a second there.
 */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import * as Cli from "../../src/outbox/Cli.ts"

const why = (...args: ReadonlyArray<string>): string =>
  Either.match(Cli.parse(args), {
    onLeft: ({ exitCode, message }) => `${exitCode} ${message}`,
    onRight: () => "understood"
  })

describe("jobs <command>", () => {
  it("reads commands, arguments and options", () => {
    expect(Either.getOrThrow(Cli.parse(["list", "mail_job", "--status", "all", "--limit", "5"]))).toEqual({
      command: "list",
      args: ["mail_job"],
      options: { status: "all", limit: "5" }
    })
    expect([[], ["--help"], ["-v"]].map((args) => Either.getOrThrow(Cli.parse(args)).command)).toEqual([
      "help",
      "help",
      "version"
    ])
  })
  it("refuses what it does not understand with exit code 2, suggesting what may be meant", () => {
    expect([
      why("lsit"),
      why("list"),
      why("show", "a", "b"),
      why("list", "t", "--stauts", "x"),
      why("list", "t", "--status"),
      why("types", "--url", "x"),
      why("constructor")
    ]).toEqual([
      expect.stringMatching(/^2 .*did you mean list\?/),
      expect.stringMatching(/^2 .*<table>, got none/),
      expect.stringMatching(/^2 .*<job id>, got a b/),
      expect.stringMatching(/^2 .*did you mean --status\?/),
      expect.stringMatching(/^2 .*needs a value/),
      expect.stringMatching(/^2 .*--url is not an option of types/),
      expect.stringMatching(/^2 .*is not a command/)
    ])
  })
  it("help names every command and the settings it uses", () => {
    for (const word of [
      "run",
      "types",
      "schema",
      "list <table>",
      "show <job id>",
      "retry",
      "cancel",
      "SVC_CONFIG_PATH"
    ])
      expect(Cli.help("1.2.3")).toContain(word)
  })
})
