// Plain JavaScript on purpose: it must say its sentence on any Node, however old.
const major = Number(process.versions.node.split(".")[0]);
if (process.argv.includes("--install")) {
  // npm ci itself may run on the machine's own Node; Node 24 comes with the packages.
  if (major < 20) {
    console.error(`collector: installing needs Node 20 or newer with its npm; this is Node ${process.versions.node}.`);
    process.exit(1);
  }
} else if (major < 24) {
  console.error(
    `collector: this needs Node 24, and this is Node ${process.versions.node} (${process.execPath}).\n` +
      "Run `npm ci` in the project's folder: it brings Node 24 along, and `npx collector` uses it.",
  );
  process.exit(2);
}
