import { Command } from 'commander';
import { VERSION } from '../version.ts';
import { addBroker } from './broker.ts';
import { addBrokerData } from './broker-data.ts';
import { addBrokerRun } from './broker-run.ts';
import { addCluster } from './cluster.ts';
import { addCompletion } from './completion.ts';
import { addDev } from './dev/command.ts';
import { addMove } from './move.ts';
import { shortened } from './output.ts';
import { addOffline } from './offline.ts';
import { addPlacement } from './placement.ts';
import { addMember, addRaft } from './raft.ts';
import { addResource } from './resource.ts';
import { addShard } from './shard.ts';
import { addTransfer } from './transfer.ts';
import { addWatch } from './watch.ts';
import { processEnvironment, type CliEnvironment } from './environment.ts';

/** Every command but `serve`, which the binary adds. Usage errors are thrown, not exited on. */
export function buildProgram(environment: CliEnvironment = processEnvironment()): Command {
  const program = new Command('evenkeel')
    .description('The control plane of a sharded stream broker: who leads each shard, kept level.')
    .version(VERSION, '--version', 'print the version')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => environment.out(text),
      writeErr: (text) => environment.note(text),
      outputError: (text, write) => write(shortened(text)),
    })
    .showHelpAfterError('(add --help for what it takes)');
  addCluster(program, environment);
  addRaft(program, environment);
  addMember(program, environment);
  const broker = addBroker(program, environment);
  addBrokerRun(broker, environment);
  addBrokerData(broker, environment);
  addResource(program, environment);
  addShard(program, environment);
  addMove(program, environment);
  addPlacement(program, environment);
  addWatch(program, environment);
  addTransfer(program, environment);
  addOffline(program, environment);
  addDev(program, environment);
  addCompletion(program, environment);
  return program;
}
