region = "{{ .nuon.cloud_account.aws.region }}"
