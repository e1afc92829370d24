/** Pieces of regular expressions, each a corner of how the database's engine reads them, and texts to try them on. */

/** Here and there a pattern, or here and there none. */
const shared: ReadonlyArray<string> = [
  ...["a", "b", ".", "\\d", "\\w", "\\s", "\\D", "\\W", "\\S", "\\pL", "\\PN", "\\p{L}", "\\p{Lu}", "\\p{Greek}"],
  ...["\\p{Script=Greek}", "\\p{sc=Grek}", "\\p{scx=Greek}", "\\p{gc=Lu}", "\\p{Letter}", "\\p{Alphabetic}"],
  ...["\\p{Any}", "\\p{ASCII}", "\\p{Emoji}", "\\p{Nd}", "\\p{^L}", "\\P{^L}", "\\p{X}", "\\p", "\\p{", "\\P{Greek}"],
  ...["\\b", "\\B", "\\A", "\\z", "\\<", "\\>", "\\b{start}", "\\b{end}", "\\b{start-half}", "\\b{end-half}"],
  ...["\\b{foo}", "\\b{", "\\b{2}", "^", "$", "(?m:^)b", "(?m)^a$", "(?sm)^.$", "\\b*", "\\b+", "^*", "$*", "(^)*"],
  ...[
    "\\0",
    "\\1",
    "\\8",
    "\\12",
    "\\072",
    "\\Qa.b\\E",
    "\\Q",
    "\\E",
    "\\C",
    "\\Z",
    "\\e",
    "\\cA",
    "\\h",
    "\\R",
    "\\X"
  ],
  ...["\\G", "\\K", "\\N", "\\o{101}", "\\a", "\\f", "\\v", "\\t", "\\n", "\\r", "\\x41", "\\x{41}", "\\x{110000}"],
  ...["\\x4", "\\x{}", "\\x{D83D}", "\\x{1F600}", "\\u0041", "\\u{41}", "\\U00000041", "\\uD83D", "\\-", "\\ ", "\\#"],
  ...["\\&", "\\~", "\\_", "\\%", "\\@", "\\!", '\\"', "\\'", "\\,", "\\:", "\\;", "\\=", "\\`", "\\/", "\\é", "\\"],
  ...["[a]", "[^a]", "[]", "[]a]", "[^]a]", "[a-]", "[-a]", "[a-c-e]", "[c-a]", "[a&&b]", "[a-c&&[b]]", "[a-c--b]"],
  ...["[a~~b]", "[a[b]]", "[[a]b]", "[a[^b]]", "[[:alpha:]]", "[[:^alpha:]]", "[:alpha:]", "[[:foo:]]", "[[:word:]]"],
  ...["[[:ascii:]]", "[[:punct:]]", "[\\d]", "[\\D]", "[\\w-z]", "[a-\\d]", "[\\b]", "[\\B]", "[\\1]", "[\\07]", "[[]"],
  ...["[\\x41-\\x43]", "[\\pL]", "[^\\pL]", "[\\p{Greek}a]", "[\\]]", "[a", "[a\\", "[ a ]", "[--a]", "[a--]", "[&&a]"],
  ...["[a&&]", "[a&b]", "[~~]", "[\\S\\s]", "[^\\S]", "[^\\W]", "[\\Wa]", "[\\S-]", "[\\-a]", "[.]", "[$^]", "[^^]"],
  ...["[a-z&&[^aeiou]]", "[\\w--\\d]", "[\\w&&[^_]]", "[^a-z--c]", "[é-ü]", "[\\n]", "[\\Q]\\E]", "[😀]"],
  ...["a*", "a+", "a?", "a*?", "a+?", "a??", "a**", "a*+", "a++", "a?+", "a{2}", "a{2,}", "a{,2}", "a{2,3}", "a{3,2}"],
  ...["a{2}?", "a{2}+", "a{2}{3}", "a{0}", "a{1000}", "a{ 2 }", "a{}", "a{,}", "a{x}", "{", "}", "{2}", "*a", "+a"],
  ...["a|*", "(*a)", "a||b", "|", "|a", "a|", "()", "(|)", "()*", "(|a)*", "(a", "a)", "(?:a)", "(?:)", "(?)", "(?i)a"],
  ...["(?i:A)b", "(?-i)a", "(?i-s)a", "(?s).", "(?U)a+", "(?u)a", "(?n)a", "(?P<n>a)", "(?<n>a)", "(?<n>a)(?<n>b)"],
  ...["(?P=n)", "(?P<1>a)", "(?P<n-m>a)", "(?<n.m>a)", "(?<n[0]>a)", "(?'n'a)", "(?=a)", "(?!a)", "(?<=a)", "(?<!a)"],
  ...["(?>a)", "(?#c)", "(?i", "(?", "(?P", "(?P<>a)", "(?ii)a", "(?i-i)a", "(?--i)a", "(?-)a", "(?i-)a", "(?i)"],
  ...["(?i)*", "a(?i)b", "a(?i)*", "\\w{30}", "(?i)\\u{212a}", "(?i)k", "(?i)ſ", "(?i)ß", "(?i)\\x{3c3}", "(?i)[^a]"],
  ...[" ", "#", "a #b", "\\.", "a$b", "a^b", "é", "日本", "😀"]
]

/** Patterns there, and refused here: by what the fault says. */
export const refusedHere: ReadonlyArray<readonly [pattern: string, fault: RegExp]> = [
  ["(?x) a b # c", /flag x is not supported/],
  ["(?R)a", /flag R is not supported/],
  ["(?-u)a", /flag -u is not supported/],
  ["a{1001}", /more than 1000 is not supported/],
  ["(a{100}){100}", /not supported: .*repeat count/],
  ["\\p{greek}", /\\p\{greek\} is not supported/],
  ["\\p{Age=3.0}", /is not supported/],
  ["\\p{L}".repeat(17), /more than 16 properties/],
  ["(?i)[\\w--a]", /not supported under \(\?i\)/]
]

export const patterns: ReadonlyArray<string> = shared

export const texts: ReadonlyArray<string> = [
  ...["", "a", "b", "ab", "abc", "A", "B", "aa", "aaa", "aaaaaa", "a b", " ", "\n", "a\nb", "b\na", "a.b", "a-b", "-"],
  ...["&", "&&", "~", "]", "[", "\\", "0", "5", "1", ":", "\u0000", "\b", "\u000b", "\r\n", "\t", "é", "ü", "ß", "ſ"],
  ...["k", "\u212a", "σ", "ς", "Σ", "日本", "😀", "x", "z", "e", "^", "$", "{", "}", "#", "_", "٣", "n", "aé", "éa"],
  ...["\u2028", "\u0085", "\u00a0", "ａ", "l", "alpha", "é a", "a é b", "Ⓐ", "\u200d", "e\u0301", "naïve café", "é-é"]
]
