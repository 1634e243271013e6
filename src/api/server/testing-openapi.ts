import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";

/** As far as answers are looked up in an OpenAPI 3.1 description. */
interface Description {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly responses: Readonly<Record<string, Described>> }>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, object>>; readonly responses: Readonly<Record<string, Described>> };
}
interface Described {
  readonly $ref?: string;
  readonly headers?: Readonly<Record<string, object>>;
  readonly content?: Readonly<Record<string, { readonly schema: object }>>;
}
/** Headers that say something of an answer; others belong to HTTP itself. */
const TELLING = ["ETag", "Location", "Retry-After", "WWW-Authenticate"];
/** On problems they are there where they say something. */
const isProblem = (status: number): boolean => status >= 400;

/** What is wrong with an answer; undefined: nothing, or it is the answer to something that the description does not have. */
export type AnswerCheck = (method: string, path: string, status: number, body: string, headers: Headers) => string | undefined;

/**
 * Holds answers to an OpenAPI 3.1 description: its status and its headers are described, its body is of the schema, and there is none where
 * none is described.
 */
export function answerCheck(description: Description): AnswerCheck {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  // The package's types know its CommonJS form alone.
  (formats as unknown as (ajv: Ajv2020) => void)(ajv);
  const compiled = new Map<object, ValidateFunction>();
  const templates = Object.keys(description.paths).map((template) => ({
    template,
    matches: new RegExp(`^${template.replaceAll(/\{\w+\}/g, "[^/]+")}$`),
  }));
  return (method, path, status, body, headers) => {
    const bare = path.split("?")[0] ?? path;
    const template = templates.find(({ matches }) => matches.test(bare))?.template;
    const operation = template === undefined ? undefined : description.paths[template]?.[method.toLowerCase()];
    if (!operation) return undefined;
    const said = operation.responses[String(status)];
    const described = said?.$ref === undefined ? said : description.components.responses[said.$ref.split("/").at(-1) ?? ""];
    if (!described) return `${method} ${bare}: ${status} is not described`;
    for (const name of TELLING)
      if (described.headers?.[name] ? !headers.has(name) && !isProblem(status) : headers.has(name))
        return `${method} ${bare}: ${status} ${headers.has(name) ? "has" : "lacks"} the header ${name}, other than described`;
    const schema = described.content?.["application/json"]?.schema;
    if (!schema) return body === "" ? undefined : `${method} ${bare}: ${status} has a body, and none is described`;
    const validate = compiled.get(schema) ?? ajv.compile({ ...schema, components: description.components });
    compiled.set(schema, validate);
    if (body !== "" && validate(JSON.parse(body))) return undefined;
    return `${method} ${bare}: ${status} is not as described: ${body === "" ? "no body" : ajv.errorsText(validate.errors)}`;
  };
}
