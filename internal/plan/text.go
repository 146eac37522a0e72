package plan

// ProfileText returns the file that FindProfile reads, as it is.
func ProfileText(root, nameOrFile string) ([]byte, error) {
	return text(locate(root, profileDir, "profile", nameOrFile))
}

// PresetText returns the file that FindPreset reads, as it is.
func PresetText(root, nameOrFile string) ([]byte, error) {
	return text(locate(root, presetDir, "preset", nameOrFile))
}

func text(path string, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return readFile(path)
}
