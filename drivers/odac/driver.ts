import { DETAILS } from "../../src/model/details.ts";
import { warning } from "../../src/model/warning.ts";
import { withPlugin } from "../plugin/driver.ts";
import { profileDriver } from "../profile/driver.ts";
import { facts } from "./facts.ts";

export default withPlugin(
  profileDriver({
    type: facts.type,
    title: facts.title,
    details: DETAILS.odac.read,
    fieldsOf: ({ protocol_override }) => ({ protocol_override: protocol_override ?? "none" }),
    warningsOf: ({ protocol_override: forced }) =>
      forced === null
        ? []
        : [
            warning(
              "protocol_forced",
              `protocol_override is ${forced}: forcing a protocol writes to the controller for good, which the collector never does. ` +
                `Select ${forced} at the controller itself, or let protocol_override be null in the configuration API; it is read as if ${forced} were selected`,
            ),
          ],
  }),
);
