import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";

/** As far as answers are looked up in an OpenAPI 3.1 description. */
interface Description {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly responses: Readonly<Record<string, Described>> }>>>>;
  readonly components?: { readonly schemas?: Readonly<Record<string, object>> };
}
interface Described {
  readonly content?: Readonly<Record<string, { readonly schema: object }>>;
}

/** What is wrong with an answer; undefined: nothing, or it is the answer to something that the description does not have. */
export type AnswerCheck = (method: string, path: string, status: number, body: string) => string | undefined;

/** Holds answers to an OpenAPI 3.1 description: its status is described, its body is of the schema, and there is none where none is described. */
export function answerCheck(description: Description): AnswerCheck {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  // The package's types know its CommonJS form alone.
  (formats as unknown as (ajv: Ajv2020) => void)(ajv);
  const compiled = new Map<object, ValidateFunction>();
  const templates = Object.keys(description.paths).map((template) => ({
    template,
    matches: new RegExp(`^${template.replaceAll(/\{\w+\}/g, "[^/]+")}$`),
  }));
  return (method, path, status, body) => {
    const bare = path.split("?")[0] ?? path;
    const template = templates.find(({ matches }) => matches.test(bare))?.template;
    const operation = template === undefined ? undefined : description.paths[template]?.[method.toLowerCase()];
    if (!operation) return undefined;
    const described = operation.responses[String(status)] ?? operation.responses["default"];
    if (!described) return `${method} ${bare}: ${status} is not described`;
    const schema = described.content?.["application/json"]?.schema;
    if (!schema) return body === "" ? undefined : `${method} ${bare}: ${status} has a body, and none is described`;
    const validate = compiled.get(schema) ?? ajv.compile({ ...schema, components: description.components });
    compiled.set(schema, validate);
    if (body !== "" && validate(JSON.parse(body))) return undefined;
    return `${method} ${bare}: ${status} is not as described: ${body === "" ? "no body" : ajv.errorsText(validate.errors)}`;
  };
}
