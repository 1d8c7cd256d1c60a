export { buildProgram } from './program.ts';
export { processEnvironment, type CliEnvironment } from './environment.ts';
export { CliExit, runProgram } from './run.ts';
