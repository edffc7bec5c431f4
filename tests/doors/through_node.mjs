// Passes the lines of its input through the client of examples/node, and writes the answers: a worker behind a worker.
// `node through_node.mjs PYTHON`

import { Checkpoints } from "../../examples/node/checkpoints.mjs";

const checkpoints = new Checkpoints({ python: process.argv[2] });
let rest = Buffer.alloc(0);
const pass = (line) => checkpoints.line(line.toString("utf8")).then((answer) => process.stdout.write(`${answer}\n`));
const passed = [];
for await (const chunk of process.stdin) {
  rest = Buffer.concat([rest, chunk]);
  for (let end = rest.indexOf(0x0a); end >= 0; end = rest.indexOf(0x0a)) {
    passed.push(pass(rest.subarray(0, end)));
    rest = rest.subarray(end + 1);
  }
}
await Promise.all(passed);
process.exitCode = await checkpoints.close();
