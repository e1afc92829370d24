/**
 * Where configuration comes from: the environment, the configuration file, and files that hold secrets.
 *
 * A port, so that reading settings stays free of any runtime and a test or another deployment can bring its own.
 */
import { Context, Layer } from "effect"

/** PEM texts. */
export interface TlsMaterial {
  /** The certificate, followed by its chain. */
  readonly cert: string
  readonly key: string
  readonly ca: string | undefined
}

/** The configuration file after parsing; `fault` when it could not be read or parsed. */
export interface ConfigFile {
  /** Path as shown to the operator. */
  readonly path: string
  readonly content: unknown
  readonly fault: string | undefined
}

/** Result of the check of TLS files. */
export interface TlsJudged {
  readonly faults: ReadonlyArray<string>
  readonly warnings: ReadonlyArray<string>
}

/** Environment, configuration file and secret files of one process. */
export interface ConfigSourceShape {
  readonly env: { readonly [name: string]: string | undefined }
  /** Undefined if there is no file and none was named. */
  readonly file: ConfigFile | undefined
  /** Content of a file that holds a secret, or why it cannot be read. */
  readonly readText: (path: string) => { readonly text: string } | { readonly fault: string }
  /**
   * Checks TLS files: faults that keep them from being used, and warnings for the operator. `names`: the setting of
   * each file, for messages. If absent, the files are used unchecked.
   */
  readonly judgeTls?: (material: TlsMaterial, names: { readonly [K in keyof TlsMaterial]: string }) => TlsJudged
  /** The machine's name, for addresses that name no host (D24). */
  readonly hostName: string
}

/**
 * Environment, configuration file and secret files, for the `layerEnv` of both configurations; `layerMemory` for values
 * at hand.
 */
export class ConfigSource extends Context.Tag("ports/ConfigSource")<ConfigSource, ConfigSourceShape>() {
  static readonly layerMemory = (given: Partial<ConfigSourceShape>): Layer.Layer<ConfigSource> =>
    Layer.succeed(ConfigSource, {
      env: {},
      file: undefined,
      readText: () => ({ fault: "no such file" }),
      hostName: "localhost",
      ...given
    })
}
