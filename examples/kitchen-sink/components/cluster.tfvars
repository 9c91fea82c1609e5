tier = "{{ .nuon.inputs.inputs.tier }}"
