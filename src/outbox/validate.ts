/**
 * Checks payloads against the schemas of an OpenAPI document: JSON Schema 2020-12, all faults at once.
 *
 * ajv and not a smaller library, because it knows `unevaluated*`, `prefixItems` and references across a document, and
 * words its faults. It compiles schemas with `new Function`: on a page whose content policy forbids that, validation
 * fails with a fault that says so. `format` is only an annotation, by the standard. ajv gets `$dynamicRef` to an anchor
 * in `$defs` wrong, so a document with one that may have several targets (`dynamicRefs.ts`) is refused: a wrong verdict
 * would be worse.
 */
import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js"
import type { ApiDocument, Route } from "./document.ts"
import type { Fault } from "./errors.ts"

const base = "spec:///document"

/** `/to/0/name` becomes `to[0].name`. */
const dotted = (pointer: string): string =>
  pointer
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"))
    .map((step) => (/^\d+$/.test(step) ? `[${step}]` : `.${step}`))
    .join("")

/** Keywords whose faults only repeat that a branch does not fit. */
const silent = new Set(["if", "allOf"])

const faultOf = ({ instancePath, keyword, message = "is wrong", params }: ErrorObject): Fault => {
  const path = `payload${dotted(instancePath)}`
  if (keyword === "required") return { path: `${path}.${String(params["missingProperty"])}`, reason: "is missing" }
  if (keyword === "additionalProperties")
    return { path: `${path}.${String(params["additionalProperty"])}`, reason: "is not a parameter of this route" }
  if (keyword === "unevaluatedProperties")
    return { path: `${path}.${String(params["unevaluatedProperty"])}`, reason: "is not a parameter of this route" }
  if (keyword === "enum") return { path, reason: `must be one of ${JSON.stringify(params["allowedValues"])}` }
  if (keyword === "const") return { path, reason: `must be ${JSON.stringify(params["allowedValue"])}` }
  return { path, reason: message }
}

const distinct = (faults: ReadonlyArray<Fault>): ReadonlyArray<Fault> => [
  ...new Map(faults.map((fault) => [`${fault.path} ${fault.reason}`, fault])).values()
]

/** Pointer to the first `$dynamicRef`. */
const dynamic = (value: unknown, at: string): string | undefined => {
  if (typeof value !== "object" || value === null) return undefined
  for (const [key, item] of Object.entries(value)) {
    const found = key === "$dynamicRef" && typeof item === "string" ? `${at}/${key}` : dynamic(item, `${at}/${key}`)
    if (found !== undefined) return found
  }
  return undefined
}

/** Validates payloads of one document. */
export class Validator {
  /** Why the document's schemas cannot be used; undefined if they can. */
  private readonly unusable: Fault | undefined
  private readonly ajv = new Ajv2020({
    allErrors: true,
    strict: false,
    validateSchema: false,
    validateFormats: false,
    discriminator: true,
    logger: false
  })
  private readonly compiled = new Map<string, ValidateFunction>()

  constructor(document: ApiDocument) {
    this.unusable = this.add(document.content)
  }

  private add(content: ApiDocument["content"]): Fault | undefined {
    const unsupported = dynamic(content, "#")
    if (unsupported !== undefined)
      return {
        path: unsupported,
        reason:
          "is not supported: $dynamicRef is followed where the document has its $dynamicAnchor once and no $id; write it as a $ref"
      }
    try {
      this.ajv.addSchema(content, base)
      return undefined
    } catch (error) {
      return { path: "#", reason: `cannot be used: ${error instanceof Error ? error.message : String(error)}` }
    }
  }

  /** Compiles a route's schema; throws its faults. */
  private of(pointer: string): ValidateFunction {
    let validate = this.compiled.get(pointer)
    if (validate === undefined) this.compiled.set(pointer, (validate = this.ajv.compile({ $ref: `${base}${pointer}` })))
    return validate
  }

  /** Faults of the schemas themselves: dangling references, keywords with impossible values. */
  faults(routes: ReadonlyArray<Route>): ReadonlyArray<Fault> {
    if (this.unusable !== undefined) return [this.unusable]
    return routes.flatMap(({ path, schema }) => {
      if (schema === undefined) return []
      try {
        this.of(schema)
        return []
      } catch (error) {
        return [
          {
            path,
            reason: `has a schema that cannot be used: ${error instanceof Error ? error.message : String(error)}`
          }
        ]
      }
    })
  }

  check(route: Route, payload: unknown): ReadonlyArray<Fault> {
    if (route.schema === undefined)
      return payload !== null && typeof payload === "object" && Object.keys(payload).length === 0
        ? []
        : [{ path: "payload", reason: "must be an empty object: this route takes no body" }]
    const validate = this.of(route.schema)
    if (validate(payload)) return []
    const errors = (validate.errors ?? []).filter(({ keyword }) => !silent.has(keyword))
    return distinct((errors.length > 0 ? errors : (validate.errors ?? [])).map(faultOf))
  }
}
