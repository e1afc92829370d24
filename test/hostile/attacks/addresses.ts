/**
 * Addresses that somebody registers as an SSP, to hear the secret or to have the service call what only it can reach.
 *
 * Each row is a way in that somebody has used somewhere. `test/core/access/hosts.test.ts` judges them,
 * `storm.campaign.test.ts` registers them at a built scheduler.
 */

/** Never called. */
export const never: ReadonlyArray<string> = [
  "169.254.169.254",
  "169.254.0.1",
  "100.100.100.200",
  "0.0.0.0",
  "::",
  "fe80::1",
  "[fe80::1]",
  "fd00:ec2::254",
  "::ffff:169.254.169.254",
  "::ffff:a9fe:a9fe",
  "febf::1",
  "192.0.0.192",
  "168.63.129.16",
  "64:ff9b::a9fe:a9fe",
  "64:ff9b:1::a9fe:a9fe",
  "2002:a9fe:a9fe::1",
  "::ffff:0:169.254.169.254",
  "::169.254.169.254"
]

/** May hear the secret. */
export const inside: ReadonlyArray<string> = [
  "127.0.0.1",
  "127.9.9.9",
  "10.0.0.1",
  "172.16.0.1",
  "172.31.255.255",
  "192.168.1.1",
  "::1",
  "[::1]",
  "fd12::1"
]

/** Called without it. */
export const outside: ReadonlyArray<string> = [
  "8.8.8.8",
  "172.32.0.1",
  "172.15.0.1",
  "192.169.0.1",
  "11.0.0.1",
  "2001:db8::1",
  "::ffff:8.8.8.8",
  "::ffff:10.0.0.1",
  "::ffff:127.0.0.1",
  "::127.0.0.1",
  "64:ff9b::a00:1",
  "64:ff9b:1::7f00:1",
  "2002:7f00:1::1",
  "2002:a00:1::",
  "::ffff:0:10.0.0.1",
  "192.0.0.1",
  "168.63.129.17"
]

/** Names, which stand for what they are looked up as. */
export const names: ReadonlyArray<string> = ["localhost", "ssp.example", "1.2.3", "10.0.0.256"]

/** Links to what is never called, listed or not. */
export const forbiddenUrls: ReadonlyArray<string> = [
  "http://169.254.169.254",
  "http://169.254.169.254/",
  "http://2852039166",
  "http://0xa9fea9fe",
  "http://0251.0376.0251.0376",
  "http://[::ffff:169.254.169.254]",
  "http://[fe80::1]",
  "http://METADATA.google.internal.",
  "http://0/"
]

/** Texts with more than an address, or with none. */
export const oddUrls: ReadonlyArray<string> = [
  "http://u:p@a.example",
  "http://a.example/?q",
  "http://a.example/#f",
  "ftp://a.example",
  "http://"
]
