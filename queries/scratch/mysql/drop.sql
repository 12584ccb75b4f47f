-- Removes a scratch database that has just been proven to be a drill's own.
DROP DATABASE {scratch}
