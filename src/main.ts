#!/usr/bin/env -S node --max-semi-space-size=8
// The young generation is kept small: emptying a full one is what holds the event loop, and with it Raft, longest.
import { buildProgram, processEnvironment, runProgram } from './cli/index.ts';

const environment = processEnvironment();
const program = buildProgram(environment);
// A client's command starts without loading the node. All else (`serve`, help, a slip of the pen) sees every command.
const [, , name] = process.argv;
if (name === 'completion' || !program.commands.some((command) => command.name() === name)) {
  const { addServe } = await import('./serve.ts');
  addServe(program, environment);
}
const code = await runProgram(program, process.argv, environment);
// Output to a pipe may still be on its way: the process ends by itself, and at the latest once that is written.
process.exitCode = code;
await environment.flush();
process.exit(code);
