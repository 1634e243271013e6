/** Statements that bind the platform alone, and why the collector as its client has nothing to keep. */
export const PRODUCER_ONLY: Readonly<Record<string, string>> = {
  "1 site": "it asks for no site, and takes what its key reaches",
  "2.6 uuid": "it asks for no site",
  "2.6 name": "it asks for no site",
  "4.1 single": "it reads the list alone",
  "4.1 update and delete": "its verbs pass on what the platform answers",
  "4.1 stored password": "the platform's own passwords",
  "4.2 GET {uuid}": "it reads the list alone",
  "4.3 GET": "it asks for no site",
  "4.3 POST": "it makes no site",
  "4.3 GET {uuid}": "it asks for no site",
  "4.3 PATCH {uuid}": "it changes no site",
  "4.3 DELETE {uuid}": "it deletes no site",
  "4.4 production runs": "it asks for none",
  "4.4 time series": "it reads no values back",
  "4.5 rule 7": "it reads no values back",
  "8 bodies": "bounds of the embedded API",
};
