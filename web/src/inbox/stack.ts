/** One line of a stack, or a run of library frames that is folded away. */
export type StackPart =
  | { kind: "error" | "cause" | "own" | "note"; text: string }
  | { kind: "library"; lines: readonly string[] };

/**
 * Code that nobody on call has written: runtimes, and the libraries that integrations are built on.
 * All other frames count as the reader's own code.
 */
const libraries = [
  /^(java|javax|jdk|sun|com\.sun|jakarta|kotlin|kotlinx|scala|groovy|clojure)\./,
  /^org\.(apache|springframework|hibernate|eclipse|jboss|slf4j|postgresql|mariadb|bouncycastle|quartz|w3c|xml|codehaus)\./,
  /^com\.(fasterxml|zaxxer|google|mysql|microsoft|oracle|ibm|amazonaws|azure|jcraft|rabbitmq|mongodb|squareup)\./,
  /^(io\.(netty|micrometer|opentelemetry|vertx|quarkus|micronaut|grpc|projectreactor|undertow)|reactor|okhttp3|retrofit2|ch\.qos|net\.sf|software\.amazon|freemarker|redis\.clients)\./,
  /node:|\/node_modules\/|\(internal\//,
  /\/(site|dist)-packages\/|\/lib\/python\d/,
  /^(System|Microsoft)\./,
];

// A parser uses the same form for the place in its input where it stopped: "at [Source: …]" is not
// a frame.
const frame = /^\s*(?:at\s+(?<call>[^\s[].*)|File\s+"(?<file>[^"]+)".*)$/;

/** Splits a stack into its parts, so that the frames that the reader can change stand out. */
export function readStack(stack: string): readonly StackPart[] {
  const parts: StackPart[] = [];
  let folded: string[] | undefined;
  for (const line of stack.replace(/\s+$/, "").split(/\r?\n/)) {
    const found = frame.exec(line)?.groups;
    const code = found?.call ?? found?.file;
    if (code !== undefined && isLibrary(code)) {
      if (!folded) {
        folded = [];
        parts.push({ kind: "library", lines: folded });
      }
      folded.push(line);
      continue;
    }
    // The count of omitted frames has no meaning alone: it ends the run of library frames before
    // it.
    if (folded && /^\s*\.\.\. \d+ (more|common frames omitted)/.test(line)) {
      folded.push(line);
      continue;
    }
    folded = undefined;
    parts.push({ kind: kindOf(line, code, parts.length), text: line });
  }
  return parts;
}

function kindOf(line: string, code: string | undefined, index: number): "error" | "cause" | "own" | "note" {
  if (code !== undefined) return "own";
  if (/^\s*Caused by:/.test(line)) return "cause";
  return index === 0 ? "error" : "note";
}

function isLibrary(code: string): boolean {
  const name = code.replace(/^(?:async |new )/, "").replace(/^[\w.@-]*\/(?=[\w$]+\.)/, "");
  return libraries.some((library) => library.test(name) || library.test(code));
}
