/**
 * Request bodies that are made to cost: those that begin and do not end, and those that are long, deep or wide.
 *
 * `bodies.test.ts` sends them to a server in its process, `storm.campaign.test.ts` to built processes in any order.
 */
/** The begin of a request that may ask. */
export const head = (path: string, framing: string, token: string): string =>
  `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nauthorization: Bearer ${token}\r\n${framing}\r\n\r\n`
export const announced = "content-length: 65536"
const chunked = "transfer-encoding: chunked"
/** Bytes that each has sent when it stops. */
export const most = 60_000
export const half = " ".repeat(most)

/** The ways in: a route by callback and one by effect, a length that is announced and one that is not, one piece and many. */
export const unfinished: ReadonlyArray<readonly [what: string, bytes: (token: string) => string]> = [
  ["an announced length at POST /ingest", (token) => head("/ingest", announced, token) + half],
  ["an announced length at POST /view/register", (token) => head("/view/register", announced, token) + half],
  ["no length at POST /ingest", (token) => `${head("/ingest", chunked, token)}${most.toString(16)}\r\n${half}`],
  ["tiny chunks at POST /ingest", (token) => head("/ingest", chunked, token) + "1\r\n \r\n".repeat(600)],
  ["tiny chunks at POST /view/register", (token) => head("/view/register", chunked, token) + "1\r\n \r\n".repeat(600)]
]

const change = (record: string): string => `{"table":"t","op":"CREATE","id":"t:1","record":${record}}`

/** Whole bodies, and the status of the answer; what is too large is a limit (`limits.ts`). */
export const whole: ReadonlyArray<readonly [what: string, body: string, status: number]> = [
  ["brackets that do not close", "[".repeat(60_000), 400],
  ["a record that nests", change(`${"[".repeat(5_000)}${"]".repeat(5_000)}`), 400],
  ["objects in objects", change(`${'{"a":'.repeat(5_000)}1${"}".repeat(5_000)}`), 400],
  ["a change that nests", `${"[".repeat(5_000)}${change("{}")}${"]".repeat(5_000)}`, 400],
  ["quotes", '"'.repeat(1_000), 400],
  ["very many changes that are none", `[${"{},".repeat(20_000)}{}]`, 400],
  ["a number of 50,000 digits", change(`{"n":${"9".repeat(50_000)}}`), 400],
  ["half a surrogate", change('{"text":"\\ud800"}'), 200],
  ["names of a prototype", change('{"__proto__":{"a":1},"constructor":{"prototype":{"a":1}}}'), 200],
  ["a name that is there twice", '{"table":"t","table":"u","op":"CREATE","id":"t:1","record":{}}', 400],
  ["nothing", "", 400]
]
