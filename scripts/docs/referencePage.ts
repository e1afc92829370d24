/**
 * `docs/reference.md`, made from what the code declares: settings, endpoints, error codes, commands, exit codes.
 *
 * Why made and compared: an operator looks things up here, and a page typed by hand lags behind the code on the first
 * busy day. `npm run docs` writes it; a test fails while the committed page is another.
 */

import { scopeMeanings } from "../../src/core/access/scopes.ts"
import { backendKeys, jobTableKeys } from "../../src/core/settings/serviceFile.ts"
import { type Metric, metrics } from "../../src/core/telemetry/metrics.ts"
import { variables as otelVariables } from "../../src/core/telemetry/otelSettings.ts"
import * as OutboxCli from "../../src/outbox/Cli.ts"
import { exitCodes } from "../../src/ports/StartFault.ts"
import * as SchedulerCli from "../../src/scheduler/Cli.ts"
import { fileKeys, knobs as schedulerKnobs } from "../../src/scheduler/Config.ts"
import { knobs as sspKnobs } from "../../src/ssp/Config.ts"
import * as SspCli from "../../src/ssp/commands/Cli.ts"
import { codes, type Endpoint, endpoints } from "./contractTables.ts"
import { cell, settingsTable, table } from "./settingsTable.ts"

/** Paths below `/`, so that a page in docs/ can link to its sections. */
export const pagePath = "docs/reference.md"

const byTag = (all: ReadonlyArray<Endpoint>): ReadonlyArray<readonly [string, ReadonlyArray<Endpoint>]> =>
  [...new Set(all.map(({ tag }) => tag))].map((tag) => [tag, all.filter((endpoint) => endpoint.tag === tag)])

const endpointRow = ({
  answers,
  bearer,
  errors,
  name,
  request,
  scope = "open",
  summary
}: Endpoint): ReadonlyArray<string> => [
  `\`${name}\``,
  bearer === "none" ? "open" : `\`${scope}\``,
  cell(summary),
  request === "" ? "" : `\`${cell(request)}\``,
  answers.map((answer) => `${answer.status} \`${cell(answer.shape)}\``).join("<br>"),
  errors.map((code) => `\`${code}\``).join(" ")
]

const endpointTables = (all: ReadonlyArray<Endpoint>): string =>
  byTag(all)
    .map(([tag, some]) =>
      [
        `#### ${tag}`,
        "",
        table(["Endpoint", "Scope", "What", "Request", "Answers", "Beside the usual errors"], some.map(endpointRow))
      ].join("\n")
    )
    .join("\n\n")

/** What a command line takes: its help without title and settings. */
const usage = (help: string): string => {
  const text = help.slice(help.indexOf("Usage:"), help.indexOf("\nSettings"))
  return ["```text", text.trimEnd(), "```"].join("\n")
}

const fileKeyTable = (): string =>
  table(
    ["Key of svc.yml", "Setting"],
    Object.entries(fileKeys).map(([name, key]) => [
      `\`${key}\``,
      `\`${schedulerKnobs[name as keyof typeof schedulerKnobs].env}\``
    ])
  )

const metricRow = ({ help, labels, name, on, type, unit }: Metric): ReadonlyArray<string> => [
  `\`${name}\``,
  type,
  unit === "" ? "" : unit,
  { ssp: "SSP", scheduler: "scheduler", both: "both" }[on],
  cell(help),
  Object.entries(labels)
    .map(([label, values]) => `\`${label}\`: ${typeof values === "string" ? cell(values) : values.join(", ")}`)
    .join("; ")
]

const whose = (all: ReadonlyArray<Endpoint>, code: string): string => {
  const some = all.filter((endpoint) => endpoint.errors.includes(code) || endpoint.everywhere.includes(code))
  if (some.length === all.length) return "every endpoint"
  const others = all.filter((endpoint) => !some.includes(endpoint))
  if (
    some.length > 0 &&
    some.every(({ bearer }) => bearer !== "none") &&
    others.every(({ bearer }) => bearer === "none")
  )
    return "every endpoint with a scope"
  return some.map(({ name }) => `\`${name}\``).join(" ")
}

const settings = (): ReadonlyArray<string> => [
  "## Settings of the SSP",
  "",
  "Environment variables. The environment wins over the file that `SVC_CONFIG_PATH` names (else `./svc.yml`). Empty text counts as unset. A `_FILE` variable names a file that holds the secret. All faults are reported at once.",
  "",
  settingsTable(sspKnobs),
  "",
  "## Settings of the scheduler",
  "",
  "Where a setting has a key in `svc.yml`, the second table names it.",
  "",
  settingsTable(schedulerKnobs),
  "",
  fileKeyTable(),
  "",
  "## Keys of svc.yml",
  "",
  "Paths are relative to the file. `${NAME}` is taken from the environment; an unset name is a fault, and so is a key that nobody knows. `job_tables` may also be a list of table names, which is all the scheduler needs.",
  "",
  table(
    ["Key", "Meaning"],
    [
      ...Object.entries(jobTableKeys).map(([key, meaning]) => [`\`job_tables.<table>.${key}\``, cell(meaning)]),
      ...Object.entries(backendKeys).map(([key, meaning]) => [`\`backends.<name>.${key}\``, cell(meaning)])
    ]
  ),
  ""
]

const scopeTable = (ssp: ReadonlyArray<Endpoint>, scheduler: ReadonlyArray<Endpoint>): ReadonlyArray<string> => {
  const named = (all: ReadonlyArray<Endpoint>, scope: string): string =>
    cell(
      all
        .filter((endpoint) => endpoint.scope === scope)
        .map(({ name }) => `\`${name}\``)
        .join(" ")
    )
  return [
    "## Scopes",
    "",
    "What a secret of `SVC_AUTH_SECRETS` may open. A scope opens nothing but its own endpoints.",
    "",
    table(
      ["Scope", "For", "SSP", "Scheduler"],
      Object.entries(scopeMeanings).map(([scope, meaning]) => [
        `\`${scope}\``,
        meaning,
        named(ssp, scope),
        named(scheduler, scope)
      ])
    ),
    ""
  ]
}

const contracts = (ssp: ReadonlyArray<Endpoint>, scheduler: ReadonlyArray<Endpoint>): ReadonlyArray<string> => [
  "## Endpoints of the SSP",
  "",
  "Bodies are JSON; any content type is read as JSON, but from a page of a browser (a request with `Origin`) only `application/json` is taken. Where a scope is named, `Authorization: Bearer <secret>` is needed: `SVC_AUTH_SECRET`, which has every scope, or a secret of `SVC_AUTH_SECRETS` that has this one.  A name with `?` may be absent. Checks run in the order route (404), secret (401) and its scope (403), readiness (503), size (413), body (400). Every endpoint may answer `FORBIDDEN` or `UNSUPPORTED_MEDIA_TYPE` to a page of another origin, `FORBIDDEN` or `MISDIRECTED_REQUEST` where the scheduler asks for no secret, `NOT_FOUND`, `INVALID_REQUEST`, `INTERNAL` and, where `SVC_RATE_LIMIT` is set, `RATE_LIMITED`. The same contract is served at `/openapi.json`, readable at `/docs`.",
  "",
  endpointTables(ssp),
  "",
  "## Endpoints of the scheduler",
  "",
  "As above, with `SVC_SCHEDULER_AUTH_SECRET` for `SVC_AUTH_SECRET`, and only where that or `SVC_AUTH_SECRETS` is set; the routes of group browser then ask for `SVC_AUTH_SECRET`.",
  "",
  endpointTables(scheduler),
  "",
  "## Error codes",
  "",
  'Every error is `{ "code", "message", "details"? }`. Codes are stable, messages are not.',
  "",
  table(
    ["Code", "Status", "Meaning", "SSP", "Scheduler"],
    codes().map(({ code, description, status }) => [
      `\`${code}\``,
      String(status),
      cell(description),
      whose(ssp, code),
      whose(scheduler, code)
    ])
  ),
  ""
]

const figuresAndCommands = (): ReadonlyArray<string> => [
  "## Metrics",
  "",
  "`GET /metrics?format=prometheus` on either server. A label's values are fixed, or bounded by what is named.",
  "",
  table(["Metric", "Type", "Unit", "On", "Meaning", "Labels"], metrics.map(metricRow)),
  "",
  "## OpenTelemetry",
  "",
  "Nothing is sent unless an endpoint is set. `<SIGNAL>` is `TRACES`, `METRICS` or `LOGS`.",
  "",
  table(
    ["Variable", "Default", "Meaning"],
    otelVariables.map(({ defaultText, meaning, name }) => [
      name
        .split(", ")
        .map((each) => `\`${each}\``)
        .join(", "),
      cell(defaultText),
      cell(meaning)
    ])
  ),
  "",
  "## Commands",
  "",
  "After `npm run build`: `node dist/ssp.js`, `node dist/scheduler.js`, `node dist/jobs.js`.",
  "",
  usage(SspCli.help("")),
  "",
  usage(SchedulerCli.help("")),
  "",
  usage(OutboxCli.help("")),
  "",
  "## Exit codes",
  "",
  table(
    ["Code", "Meaning"],
    Object.entries(exitCodes).map(([code, meaning]) => [code, meaning])
  ),
  ""
]

/** Every section with its heading. */
export const referencePage = (): string =>
  [
    "# Reference",
    "",
    "Made from the code by `npm run docs`; a test holds this page equal to what the code declares. Do not edit it.",
    "",
    "[Settings of the SSP](#settings-of-the-ssp) · [Settings of the scheduler](#settings-of-the-scheduler) · [Keys of svc.yml](#keys-of-svcyml) · [Scopes](#scopes) · [Endpoints of the SSP](#endpoints-of-the-ssp) · [Endpoints of the scheduler](#endpoints-of-the-scheduler) · [Error codes](#error-codes) · [Metrics](#metrics) · [OpenTelemetry](#opentelemetry) · [Commands](#commands) · [Exit codes](#exit-codes)",
    "",
    ...settings(),
    ...scopeTable(endpoints("ssp"), endpoints("scheduler")),
    ...contracts(endpoints("ssp"), endpoints("scheduler")),
    ...figuresAndCommands()
  ].join("\n")
