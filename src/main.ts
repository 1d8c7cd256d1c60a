#!/usr/bin/env node
import { buildProgram, processEnvironment, runProgram } from './cli/index.ts';
import { addServe } from './serve.ts';

const environment = processEnvironment();
const program = buildProgram(environment);
addServe(program);
const code = await runProgram(program, process.argv, environment);
// Output to a pipe may still be on its way: the process ends by itself, and at the latest once that is written.
process.exitCode = code;
process.stdout.write('', () => process.exit(code));
