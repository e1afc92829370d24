/**
 * A plugin for typedoc: the comment that opens a file is the text of its page.
 *
 * Why: every file here says what lives in it and why, but typedoc takes such a comment for a module's only where a tag
 * says so.
 */
import { readFileSync } from "node:fs"
import { Comment, Converter, ReflectionKind } from "typedoc"

const opening = /^(?:#![^\n]*\n)?\/\*\*([\s\S]*?)\*\//

/** What typedoc calls when it has loaded this. */
export const load = (app) => {
  app.converter.on(Converter.EVENT_CREATE_DECLARATION, (context, reflection) => {
    if (!reflection.kindOf(ReflectionKind.Module) || reflection.comment !== undefined) return
    const file = context.getSymbolFromReflection(reflection)?.declarations?.[0]?.getSourceFile().fileName
    const text = file === undefined ? undefined : opening.exec(readFileSync(file, "utf8"))?.[1]
    if (text !== undefined)
      reflection.comment = new Comment([
        {
          kind: "text",
          text: text
            .replace(/^[ \t]*\* ?/gm, "")
            .replace(/\{@link ([^}]+)\}/g, "`$1`")
            .trim()
        }
      ])
  })
}
