export {
  openDataDirectory,
  type DataDirectory,
  type DataDirectoryOptions,
  type Identity,
} from './data-directory.ts';
export { LogStorage } from './log-storage.ts';
