// A workflow of a few steps that goes on where it was ended: `node examples/node/resume.mjs`, and again after Ctrl-C.

import { setTimeout as pause } from "node:timers/promises";

import { Checkpoints, Refused } from "./checkpoints.mjs";

const STEPS = ["fetch", "parse", "sum up", "publish"];
const workflow_id = process.argv[2] ?? "node-example";

const checkpoints = new Checkpoints({ env: { DATABASE_URL: process.env.DATABASE_URL || "embedded:" } });
try {
  const { checkpoints: saved } = await checkpoints.ask("list", { workflow_id, include_state: false });
  const done = new Set(saved.map((row) => row.step_id));
  for (const [number, step_id] of STEPS.entries()) {
    if (done.has(step_id)) {
      console.log(`${step_id}: done before`);
      continue;
    }
    await pause(300); // the work
    const state_data = { number, result: `${step_id} is done` };
    try {
      // 0: only if nobody has saved this step meanwhile
      await checkpoints.ask("save", { workflow_id, step_id, state_data, expected_revision: 0 });
      console.log(`${step_id}: done`);
    } catch (error) {
      if (!(error instanceof Refused) || error.code !== "REVISION_CONFLICT") {
        throw error;
      }
      console.log(`${step_id}: another run was faster`);
    }
  }
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  await checkpoints.close();
}
